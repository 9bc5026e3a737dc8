import type { Runtime } from '@firebreak/core'
import type { BufferArgs } from '@firebreak/core/commands'
import type { RequestParser } from '@firebreak/core/resp'
import type { KeyLimitedError, KeySpace } from '@firebreak/shield'
import type { OnlyNode } from '../cluster/cluster-of-one.ts'
import type { ProxyCommand } from '../commands/proxy-command.ts'
import type { PinnedLane } from '../lanes/pinned-lane.ts'
import type { SharedLanes } from '../lanes/shared-lanes.ts'
import type { Observed } from '../observe/firebreak-command.ts'
import type { Backlog } from '../replies/backlog.ts'
import type { ReplySlots } from '../replies/reply-slots.ts'
import type { ClientRequest } from '../requests/client-request.ts'
import type { RosterAnswer, RosterQuery } from '../roster/client-filter.ts'
import type { ProxyUser } from '../session/proxy-users.ts'
import type { Session } from '../session/session.ts'
import type { Outlet } from '../transport/outlet.ts'
import type { Transport } from '../transport/transport.ts'
import type { Turn } from '../transport/turn.ts'
import type { ConnectionState } from '../upstream/identity.ts'
import type { ReplyTarget, SharedLane } from '../upstream/shared-lane.ts'
import type { UpstreamNode } from '../upstream/upstream-node.ts'
import type { ClusterSettings } from '../upstream/upstream-topology.ts'

/**
 * A client, its connection, its proxy and its shield as they see each other. They are one another's context, so what each
 * shows stands here, in one file that knows none of the classes behind it.
 */
export interface ProxyClient extends Required<Omit<ReplyTarget, 'onBypassed'>> {
  /** Of the proxy: on none of its threads another has it. */
  readonly id: number
  readonly host: ClientHost
  readonly session: Session
  readonly transport: Transport
  readonly outlet: Outlet
  readonly slots: ReplySlots
  readonly backlog: Backlog
  /** The request at hand, its parser and its arguments. */
  readonly request: ClientRequest
  readonly parser: RequestParser
  readonly args: BufferArgs
  /** The connections that it shares with others. */
  readonly lanes: SharedLanes
  /** The connection that it has for itself, while it has one. */
  readonly own: OwnConnection
  /** Set where a cluster is behind. */
  readonly cluster: ClusterWay | undefined
  readonly isClosed: boolean
  readonly sinceMs: number
  readonly lastActiveMs: number
  /** Aborted when the client sends no more or is gone: it stands in no line then. */
  readonly gone: AbortSignal
  /** Set when a request that stood in a limit's line comes again: it was paid for, or is refused with this. */
  limitPass: 'paid' | KeyLimitedError | undefined
  /** The youngest hot key that the client has asked for. */
  youngestHot: number
  /** The keys that this client can read, and which of them are hot. */
  keySpace(): KeySpace

  onReply(slot: number, bytes: Uint8Array, start: number, end: number, isLast: boolean): void
  isBehind(slot?: number): boolean
  whenCaughtUp(callback: () => void, slot?: number): void
  onData(bytes: Buffer, length: number): void
  onDrain(): void
  /** Redis has taken what was sent over the client's own connection: the rest of a large request, or more, may come. */
  onUpstreamDrain(): void
  /** Answers a slot with a whole reply. */
  answer(slot: number, reply: Uint8Array): void
  /** Answers the request at hand from here, in its turn, with the first `length` bytes of a reply that stays as it is. */
  answerNow(reply: Uint8Array, length?: number): void
  /** Sends the request at hand over a shared lane. */
  sendShared(lane: SharedLane, target?: ReplyTarget, tag?: number): void
  /** Sends a request whose slot was taken before. */
  sendInto(slot: number, command: ProxyCommand, request: Uint8Array): void
  /** The request at hand has to wait until all before it are answered. */
  waitForReplies(): false
  /** No request is taken until `letGo`. */
  hold(): void
  letGo(): void
  /** Goes on with requests after whatever held them up. */
  goOn(): void
  /** What is owed, all of it by the server, comes as part of a pipe; of one that is to end the server closes that. */
  forgetOwed(): void
  /** User, protocol or database have changed: other connections from now on. */
  stateChanged(): void
  /** Takes no more requests and closes once all that is owed has gone out. */
  endAfterReplies(): void
  /** Closes once what was answered so far has gone out. */
  end(): void
  destroy(): void
}

/** A client's connection to Redis for itself, as those see it who send requests over it. */
export interface OwnConnection {
  /** The connection, where the client has one. */
  readonly pinned: PinnedLane | undefined
  /** False where requests go to several nodes: none of them is the one for all that follows. */
  readonly mayStay: boolean
  /** Takes one for the request at hand and all that follow it until it is free again; false where that has to wait. */
  borrow(node?: UpstreamNode): boolean
  /** Pins one to the client; the server knows it by the client's name. */
  pinTo(node: UpstreamNode): PinnedLane
  /** Gives it up, whatever state it has. */
  unpin(): void
  /** Sends the request at hand over it, or carries it out; false where it has to wait. */
  dispatch(pinned: PinnedLane): boolean
  send(pinned: PinnedLane): void
  /** Sends the request at hand, which shows credentials, over one that nobody has used and nobody will use after it. */
  sendFresh(): void
  /** Begins to send the request at hand, of which only the first bytes are there; false where it has to wait. */
  begin(node: UpstreamNode): boolean
  /** Keeps the request at hand until it is answered, for a cluster may send it on to another node, and those before it. */
  remember(before?: readonly Uint8Array[]): void
  /** True where what the proxy would answer itself has to wait for answers from it. */
  awaitsAnswers(): boolean
  onPinnedFree(): void
  /** True while an answer is owed that may wait for others. */
  readonly mayBeBlocked: boolean
}

/** Where a node's error sends a request on to. */
export interface Redirected {
  readonly node: UpstreamNode
  readonly isAsking: boolean
}

/** What sends a client's requests to the nodes of a cluster. */
export interface ClusterWay {
  /** True where keys are spread over several nodes. */
  readonly isSpread: boolean
  /** Sends the request at hand its way; false where it has to wait. */
  dispatch(): boolean
  /** Sends a request whose slot was taken before, to the node of its key. */
  sendInto(slot: number, command: ProxyCommand, request: Uint8Array): void
  /** Where the request at hand goes, whose first arguments are there; undefined where it has to be seen whole. */
  nodeForLarge(): UpstreamNode | undefined
  /** Where an error reply sends a request of the client's own connection that was taken at `sinceMs`, if anywhere. */
  redirected(pinned: PinnedLane, reply: Uint8Array, sinceMs: number): Redirected | 'later' | undefined
}

/** What counts keys and answers for hot ones. */
export interface RequestShield {
  /** False while the kill switch is thrown: the proxy is a plain one. */
  readonly isActive: boolean
  /** True where the request at hand was answered from memory, and the same one again would be so too. */
  canRepeat: boolean
  /** Sees a request that is about to go over a shared connection: answers it, holds it, or says who gets its reply. */
  see(client: ProxyClient, command: ProxyCommand, target: ReplyTarget): 'answered' | 'held' | ReplyTarget
  /** Answers the requests that follow the last one and are the same; gives the offset behind them. */
  repeat(client: ProxyClient, bytes: Buffer, start: number, next: number, end: number): number
  /** Sees a request that goes over a connection of the client's own. */
  seePinned(client: ProxyClient, command: ProxyCommand, pinned: PinnedLane): void
  /** As `seePinned`, of a request whose last arguments are not there yet. */
  seeLarge(client: ProxyClient, command: ProxyCommand, pinned: PinnedLane): void
  /** What a client's GET of a key would be answered from memory now. */
  peek(client: ProxyClient, key: Uint8Array): Uint8Array
  /** The bytes that a client's requests stand in are about to be another's. */
  settle(): void
  spaceOf(identity: ConnectionState['identity'], database: number): KeySpace
}

/** What a client needs of the proxy it is connected to. */
export interface ClientHost {
  readonly turn: Turn
  readonly runtime: Runtime
  /** The Redis behind; of a cluster, the node for what needs no other. */
  readonly node: UpstreamNode
  /** Set where a cluster is behind. */
  readonly cluster: ClusterSettings | undefined
  /** Nobody, RESP2, database 0: how a connection to Redis begins. */
  readonly freshState: ConnectionState
  /** True while a CLIENT PAUSE may hold up connections: then nobody shares one. */
  readonly isIsolated: boolean
  /** Undefined for a plain proxy. */
  readonly shield: RequestShield | undefined
  readonly maxRequestBytes: number
  readonly maxHeldBytes: number
  readonly maxOutputBytes: number
  readonly maxInFlight: number
  readonly slowReaderMs: number
  /** True while all clients together leave too much unread. */
  readonly isFull: boolean
  /** What FIREBREAK tells about. */
  readonly observed: Observed
  /** The proxy's own users; undefined where AUTH is the server's matter. */
  readonly users: ProxyUser | undefined
  /** The proxy as a cluster of one, where it shows itself so. */
  onlyNode(client: ProxyClient): OnlyNode | undefined
  /** CLIENT PAUSE or UNPAUSE was carried out. */
  isolate(forMs: number): void
  infoSection(): string
  /** Asks about the clients of all threads. */
  readonly roster: {
    ask(query: RosterQuery, asker: ProxyClient, onAnswer: (answer: RosterAnswer) => void): void
  }
  onClientGone(client: ProxyClient): void
  onSlowReader(client: ProxyClient): void
}
