import type { Runtime } from '@firebreak/core'
import type { BufferArgs } from '@firebreak/core/commands'
import type { RequestParser } from '@firebreak/core/resp'
import type { CombineOwner, KeyLimitedError, KeySpace } from '@firebreak/shield'
import type { OnlyNode } from '../cluster/cluster-of-one.ts'
import type { ProxyCommand } from '../commands/proxy-command.ts'
import type { PinnedLane } from '../lanes/pinned-lane.ts'
import type { SharedLanes } from '../lanes/shared-lanes.ts'
import type { Observed } from '../observe/firebreak-command.ts'
import type { Backlog } from '../replies/backlog.ts'
import type { ReplySlots } from '../replies/reply-slots.ts'
import type { ClientRequest } from '../requests/client-request.ts'
import type { RosterAnswer, RosterQuery } from '../roster/client-filter.ts'
import type { ClientLogIn } from '../session/log-in.ts'
import type { Session } from '../session/session.ts'
import type { Outlet } from '../transport/outlet.ts'
import type { Transport } from '../transport/transport.ts'
import type { Turn } from '../transport/turn.ts'
import type { ConnectionState } from '../upstream/identity.ts'
import type { ReplyTarget, SharedLane } from '../upstream/shared-lane.ts'
import type { UpstreamNode } from '../upstream/upstream-node.ts'
import type { ClusterSettings } from '../upstream/upstream-topology.ts'
import type { StrangerAccess } from './stranger-access.ts'

/**
 * A client, its connection, its proxy and its shield, as they see each other. They depend on one another, so their
 * interfaces are in one file that imports none of the classes behind them.
 */
export interface ProxyClient extends Required<Omit<ReplyTarget, 'onBypassed'>> {
  /** Starts at a random number in each thread of each proxy, so that no two clients share it. */
  readonly id: number
  readonly host: ClientHost
  readonly session: Session
  readonly standing: ClientStanding
  readonly transport: Transport
  readonly outlet: Outlet
  readonly slots: ReplySlots
  readonly backlog: Backlog
  /** The current request, its parser and its arguments. */
  readonly request: ClientRequest
  readonly parser: RequestParser
  readonly args: BufferArgs
  /** The connections that it shares with others. */
  readonly lanes: SharedLanes
  /** Its dedicated connection, while it has one. */
  readonly own: OwnConnection
  /** Set if there is a cluster behind the proxy. */
  readonly cluster: ClusterWay | undefined
  readonly isClosed: boolean
  readonly sinceMs: number
  readonly lastActiveMs: number
  /** Aborted when the client sends no more or is gone: it leaves any queue then. */
  readonly gone: AbortSignal
  /** Set when a request returns from a limit's queue: it has been admitted, or is refused with this error. */
  limitPass: 'paid' | KeyLimitedError | undefined
  /** Its increments that are being combined with others'; undefined before the first. */
  combined: CombineOwner | undefined
  /** The most recent hot key that the client has asked for. */
  youngestHot: number
  /** The keys that this client can read, and which of them are hot. */
  keySpace(): KeySpace

  onReply(slot: number, bytes: Uint8Array, start: number, end: number, isLast: boolean): void
  isBehind(slot?: number): boolean
  whenCaughtUp(callback: () => void, slot?: number): void
  onData(bytes: Buffer, length: number): void
  onDrain(): void
  /**
   * Redis has accepted what was sent over the client's own connection: the rest of a large request, or more, may
   * follow.
   */
  onUpstreamDrain(): void
  /** Answers a slot with a whole reply. */
  answer(slot: number, reply: Uint8Array): void
  /** Answers the current request locally, in its turn, with the first `length` bytes of a reply that never changes. */
  answerNow(reply: Uint8Array, length?: number): void
  /** Sends the current request over a shared lane. */
  sendShared(lane: SharedLane, target?: ReplyTarget, tag?: number): void
  /** Sends a request whose slot was taken before. */
  sendInto(slot: number, command: ProxyCommand, request: Uint8Array, target?: ReplyTarget): void
  /** The current request has to wait until all earlier ones are answered. */
  waitForReplies(): false
  /** Takes no requests until `letGo`. */
  hold(): void
  letGo(): void
  /** Resumes taking requests after whatever held them up. */
  goOn(): void
  /** Everything owed is owed by the server and arrives as part of a pipe; the server closes a pipe that is to end. */
  forgetOwed(): void
  /** User, protocol or database has changed: use other connections from now on. */
  stateChanged(): void
  /** Takes no more requests and closes once everything owed has been sent. */
  endAfterReplies(): void
  /** Closes once the answers so far have been sent. */
  end(): void
  destroy(): void
}

/** Whether a client may use memory: not before it has authenticated, if it must. */
export interface ClientStanding {
  /** Sets how much of a request is read; called after each change of the client's identity. */
  renew(): void
  /**
   * Whether the current, incomplete request must wait for the server's decision; throws if the client may not send it.
   */
  mustWait(): boolean
  /** It has as many requests in flight as allowed. */
  seeCrowd(): void
  /** Closes a client that keeps sending requests without authenticating; true if it did. */
  isPatienceOver(): boolean
}

/** A client's dedicated connection to Redis, as seen by the code that sends requests over it. */
export interface OwnConnection {
  /** The connection, if the client has one. */
  readonly pinned: PinnedLane | undefined
  /** False if requests go to several nodes: then no node is the one for all later requests. */
  readonly mayStay: boolean
  /**
   * Takes a connection for the current request and all that follow it until it is free again; false if that has to
   * wait.
   */
  borrow(node?: UpstreamNode): boolean
  /** Pins a connection to the client; on the server it has the client's name. */
  pinTo(node: UpstreamNode): PinnedLane
  /** Closes it, whatever its state. */
  unpin(): void
  /** Sends the current request over it, or carries it out; false if it has to wait. */
  dispatch(pinned: PinnedLane): boolean
  send(pinned: PinnedLane): void
  /**
   * Sends the current request, which contains credentials, over a connection that nobody has used before or will use
   * afterwards.
   */
  sendFresh(): void
  /** Starts sending the current request, of which only the first bytes have arrived; false if it has to wait. */
  begin(node: UpstreamNode): boolean
  /**
   * Keeps the current request (and those before it) until it is answered, because a cluster may redirect it to another
   * node.
   */
  remember(before?: readonly Uint8Array[]): void
  /** True if an answer by the proxy itself has to wait for answers from this connection. */
  awaitsAnswers(): boolean
  onPinnedFree(): void
  /** True while an answer is owed that may depend on other clients. */
  readonly mayBeBlocked: boolean
}

/** Where a node's error redirects a request. */
export interface Redirected {
  readonly node: UpstreamNode
  readonly isAsking: boolean
}

/** A request merged from those of several clients. */
export interface SharedRequest {
  readonly bytes: Uint8Array
  readonly commandId: number
  readonly target: ReplyTarget
  /** Sent over this lane as long as it belongs to the node. */
  readonly lane: SharedLane
}

/** Routes a client's requests to the nodes of a cluster. */
export interface ClusterWay {
  /** True if keys are spread over several nodes. */
  readonly isSpread: boolean
  /** Routes the current request; false if it has to wait. */
  dispatch(): boolean
  /** Sends a request whose slot was taken earlier to the node of its key, over `lane` as long as that is the node's. */
  sendInto(slot: number, command: ProxyCommand, request: Uint8Array, target?: ReplyTarget, lane?: SharedLane): void
  /** Sends a single-key request merged from several clients, all with the same state as this one. */
  sendFor(clients: ReadonlySet<ProxyClient>, request: SharedRequest): void
  /** The connection that a request for a key in this slot would use now. */
  laneFor(hashSlot: number): SharedLane
  /** Where the current request goes, of which the first arguments have arrived; undefined if it must be seen whole. */
  nodeForLarge(): UpstreamNode | undefined
  /**
   * Where an error reply redirects a request on the client's own connection that was taken at `sinceMs`, if anywhere.
   */
  redirected(pinned: PinnedLane, reply: Uint8Array, sinceMs: number): Redirected | 'later' | undefined
}

/** What counts keys and answers for hot ones. */
export interface RequestShield {
  /** False while the kill switch is on: the proxy is a plain one. */
  readonly isActive: boolean
  /** True if the current request was answered from memory, and an identical one would be too. */
  canRepeat: boolean
  /**
   * Sees a request that is about to go over a shared connection: answers it, holds it, or says who receives its reply.
   */
  see(client: ProxyClient, command: ProxyCommand, target: ReplyTarget): 'answered' | 'held' | ReplyTarget
  /** Answers the requests after the last one that are identical to it; returns the offset after them. */
  repeat(client: ProxyClient, bytes: Buffer, start: number, next: number, end: number): number
  /** Sees a request that goes over the client's own connection. */
  seePinned(client: ProxyClient, command: ProxyCommand, pinned: PinnedLane): void
  /** Like `seePinned`, for a request whose last arguments have not arrived yet. */
  seeLarge(client: ProxyClient, command: ProxyCommand, pinned: PinnedLane): void
  /** What a client's GET of a key would now get from memory. */
  peek(client: ProxyClient, key: Uint8Array): Uint8Array
  /** The memory that holds a client's requests is about to be reused. */
  settle(): void
  spaceOf(identity: ConnectionState['identity'], database: number): KeySpace
}

/** What a client needs from its proxy. */
export interface ClientHost {
  readonly turn: Turn
  readonly runtime: Runtime
  /** The Redis behind the proxy; of a cluster, the node for requests that do not need a particular one. */
  readonly node: UpstreamNode
  /** Set if there is a cluster behind the proxy. */
  readonly cluster: ClusterSettings | undefined
  /** Unauthenticated, RESP2, database 0: how a connection to Redis begins. */
  readonly freshState: ConnectionState
  /** True while a CLIENT PAUSE may hold up connections: then none are shared. */
  readonly isIsolated: boolean
  /** Undefined for a plain proxy. */
  readonly shield: RequestShield | undefined
  readonly maxRequestBytes: number
  readonly maxHeldBytes: number
  readonly maxOutputBytes: number
  readonly maxInFlight: number
  readonly slowReaderMs: number
  /** True while all clients together have too much unread output. */
  readonly isFull: boolean
  /** The data that FIREBREAK reports. */
  readonly observed: Observed
  /** Logs in as the proxy's own users; undefined if AUTH is passed on to the server. */
  readonly users: ClientLogIn | undefined
  /** For clients that have shown no password. */
  readonly strangerAccess: StrangerAccess
  /** The proxy as a cluster of one, if it presents itself that way. */
  onlyNode(client: ProxyClient): OnlyNode | undefined
  /** CLIENT PAUSE or UNPAUSE was carried out. */
  isolate(forMs: number): void
  infoSection(): string
  /** Queries the clients of all threads. */
  readonly roster: {
    ask(query: RosterQuery, asker: ProxyClient, onAnswer: (answer: RosterAnswer) => void): void
  }
  onClientGone(client: ProxyClient): void
  onSlowReader(client: ProxyClient): void
}
