import { mayBlock } from '@firebreak/core/commands'
import { encodeCommand } from '@firebreak/core/resp'
import { dispatchRare } from '../client/dispatch.ts'
import type { ClusterWay, ProxyClient, Redirected, SharedRequest } from '../client/proxy-client.ts'
import { multiCommand, type ProxyCommand } from '../commands/proxy-command.ts'
import type { PinnedLane } from '../lanes/pinned-lane.ts'
import { carryOut } from '../session/session-commands.ts'
import type { ReplyTarget, SharedLane } from '../upstream/shared-lane.ts'
import type { UpstreamNode } from '../upstream/upstream-node.ts'
import type { ClusterSettings } from '../upstream/upstream-topology.ts'
import { ClusterSender } from './cluster-sender.ts'
import { everywhere, isForAll } from './everywhere.ts'
import { answerAsOnlyNode, isForOnlyNode } from './only-node-commands.ts'
import { redirectOf } from './redirect.ts'
import { isCrossSlot, isForMany, slotOf } from './request-slots.ts'
import { isSplittable, splitRequest } from './split.ts'
import { answerForWholeSession } from './whole-session.ts'

const ok = Buffer.from('+OK\r\n')
const noItems = Buffer.from('*0\r\n')
const queued = Buffer.from('+QUEUED\r\n')
const multi = encodeCommand(['MULTI'])
/** Maximum commands, and bytes each, that wait until it is known which node a transaction is for. */
const maxHeldCommands = 100
const maxHeldLength = 4096

/** Sends one client's requests to the right nodes of a cluster, so that the client sees one Redis. */
export class ClusterDispatch implements ClusterWay {
  readonly #client: ProxyClient
  readonly #settings: ClusterSettings
  readonly #sender: ClusterSender
  /** MULTI was answered, but no node has been chosen for the transaction yet: its commands so far, none with a key. */
  #openMulti: Uint8Array[] | undefined

  constructor(client: ProxyClient, settings: ClusterSettings) {
    this.#client = client
    this.#settings = settings
    this.#sender = new ClusterSender(client, settings)
  }

  get isSpread(): boolean {
    return this.#settings.topology.isSpread
  }

  /** Routes the current request; false if it has to wait. */
  dispatch(): boolean {
    const client = this.#client
    const { command } = client.request
    const { pinned } = client.own
    const { isSpread } = this
    const answer = isSpread && !command.isShared ? answerForWholeSession(client.request) : undefined
    if (answer !== undefined) {
      client.answerNow(answer)
      return true
    }
    if (this.#openMulti !== undefined) return this.#inOpenMulti(this.#openMulti)
    // The connection owes nothing any more and is about to be returned; then this is called again.
    if (isSpread && pinned?.isFree === true) return false
    if (pinned !== undefined && !this.#mayLeave(pinned)) {
      if (isSpread && this.#mayBeFreed(pinned)) return client.waitForReplies()
      if (isSpread && this.#isRefusedToSubscriber(pinned)) {
        client.answerNow(notWhileSubscribed(command))
        return true
      }
      return client.own.dispatch(pinned)
    }
    if (pinned !== undefined && this.#isForMany()) return this.#besidePinned(pinned)
    return this.#dispatch()
  }

  /**
   * On the node of the client's own connection nothing may be reordered: this request must not overtake what was sent
   * there, nor be overtaken by what follows.
   */
  #besidePinned(pinned: PinnedLane): boolean {
    const client = this.#client
    if (pinned.inFlight > 0) return client.waitForReplies()
    if (!this.#dispatch()) return false
    if (client.slots.owed > 0) client.waitForReplies()
    return true
  }

  #dispatch(): boolean {
    const client = this.#client
    const { command } = client.request
    const { isSpread } = this
    if (isForOnlyNode(client)) {
      this.#answerAsOnlyNode()
      return true
    }
    switch (command.way) {
      case 'session':
        return carryOut(client)
      case 'cluster':
        return this.#route()
      case 'info':
      case 'own':
        return dispatchRare(client)
      case 'script':
      case 'shared':
        if (command.mayBlock && mayBlock(command.row!, client.args)) return this.#borrow()
        return this.#route()
      default:
        break
    }
    if (!isSpread) return this.#borrow()
    if (command.name === 'MULTI' && client.args.length === 1) {
      this.#openMulti = []
      client.answerNow(ok)
      return true
    }
    return this.#borrow()
  }

  /** With Sentinels, the single master knows no slots. */
  #answerAsOnlyNode(): void {
    const { request, slots } = this.#client
    const ask = (slot: number) => this.#sender.send(request.command, request.copy(), slot, this.#client, slots.take())
    answerAsOnlyNode(this.#client, this.isSpread ? ask : undefined)
  }

  #isForMany(): boolean {
    return this.isSpread && isForMany(this.#client.request)
  }

  /** True if requests must go over the client's own connection, judging by the answers so far. */
  #isBound(pinned: PinnedLane): boolean {
    if (pinned.hasSentMulti || pinned.isInTransaction || pinned.isPipe) return true
    return this.#isSubscribedOnly(pinned)
  }

  /** A command with a key that the server would refuse to a subscriber, except that it checks the key's slot first. */
  #isRefusedToSubscriber(pinned: PinnedLane): boolean {
    // The answers still owed may end the subscriptions.
    if (!this.#isSubscribedOnly(pinned) || this.#client.slots.owed > 0) return false
    return this.#client.request.command.way !== 'pin' && slotOf(this.#client.request) >= 0
  }

  /** In RESP3 a subscriber may send other commands. */
  #isSubscribedOnly(pinned: PinnedLane): boolean {
    return pinned.isSubscribed && this.#client.session.version === 2
  }

  /**
   * After all answers (to EXEC, say) the client may have no connection of its own any more, and this request may use
   * another.
   */
  #mayBeFreed(pinned: PinnedLane): boolean {
    if (this.#client.slots.owed === 0 || pinned.hasSentMulti || pinned.isPipe) return false
    if (this.#isForMany()) return true
    const slot = slotOf(this.#client.request)
    return slot < 0 || this.#settings.topology.nodeOf(slot) !== pinned.node
  }

  /** A client that only watches keys, say, may meanwhile send something else to another node. */
  #mayLeave(pinned: PinnedLane): boolean {
    if (this.#isBound(pinned)) return false
    const { way } = this.#client.request.command
    if (way !== 'shared' && way !== 'script') return false
    if (this.#isForMany()) return true
    const slot = slotOf(this.#client.request)
    return slot >= 0 && this.#settings.topology.nodeOf(slot) !== pinned.node
  }

  #inOpenMulti(held: Uint8Array[]): boolean {
    const client = this.#client
    const { command, start, end } = client.request
    if (command.name === 'DISCARD' || (command.name === 'EXEC' && held.length === 0)) {
      this.#openMulti = undefined
      client.answerNow(command.name === 'EXEC' ? noItems : ok)
      return true
    }
    if (command.name === 'QUIT' || command.name === 'RESET') {
      this.#openMulti = undefined
      return carryOut(client)
    }
    if (held.length < maxHeldCommands && end - start <= maxHeldLength && this.#mayWaitForNode(command)) {
      held.push(client.request.copy())
      client.answerNow(queued)
      return true
    }
    if (client.slots.owed > 0) return client.waitForReplies()
    const pinned = this.#beginMulti(this.#nodeOf())
    client.own.remember(held)
    return client.own.dispatch(pinned)
  }

  /** A keyless command, which Redis will queue: the transaction's node is that of its first key. */
  #mayWaitForNode({ row, way, mark, name }: ProxyCommand): boolean {
    if (row === undefined || way !== 'shared' || mark !== undefined || row.keys.length > 0 || isForAll(name))
      return false
    const { length } = this.#client.args
    return !row.flags.has('sharded') && (row.arity > 0 ? length === row.arity : length >= -row.arity)
  }

  #beginMulti(node: UpstreamNode): PinnedLane {
    const held = this.#openMulti ?? []
    this.#openMulti = undefined
    const pinned = this.#client.own.pinTo(node)
    pinned.sendHidden(multi, { command: multiCommand })
    for (const request of held) pinned.sendHidden(request)
    return pinned
  }

  #borrow(): boolean {
    const client = this.#client
    if (client.slots.owed > 0) return client.waitForReplies()
    return client.own.borrow(this.#nodeOf())
  }

  /**
   * Where a request goes whose first arguments have arrived; undefined if it must be seen whole. A transaction that was
   * waiting for its first command begins there.
   */
  nodeForLarge(): UpstreamNode | undefined {
    const { topology } = this.#settings
    const { own, slots, args, request } = this.#client
    const { pinned } = own
    const { row, name, way } = request.command
    if (!topology.isSpread) return pinned?.node ?? this.#nodeOf()
    const slot = slotOf(request)
    if (pinned !== undefined && this.#isBound(pinned) && !this.#mayBeFreed(pinned)) return pinned.node
    // Its first key may still be on the way; a script without keys is known to have none.
    const isKeyless = way === 'script' ? args.length > 2 && args.numberAt(2) === 0 : !row?.keys.length
    if (slot < 0 && !isKeyless) return undefined
    const node = this.#nodeOf()
    if (this.#openMulti !== undefined) {
      if (slots.owed === 0) this.#beginMulti(node)
      return node
    }
    if (isForAll(name) || isSplittable(name)) return undefined
    // The client's own connection to another node may be free once everything has been answered.
    return pinned === undefined || pinned.node === node || slots.owed > 0 ? node : undefined
  }

  /**
   * Where an error reply redirects a request on the client's own connection that was taken at `sinceMs`, if anywhere.
   */
  redirected(pinned: PinnedLane, reply: Uint8Array, sinceMs: number): Redirected | 'later' | undefined {
    const redirect = redirectOf(reply)
    if (redirect === undefined) return undefined
    const { topology, retryForMs } = this.#settings
    if (redirect.kind === 'later')
      return topology.isSpread && this.#client.host.turn.nowMs - sinceMs < retryForMs ? 'later' : undefined
    const { kind, slot, host, port } = redirect
    if (kind === 'moved') return { node: topology.moved(slot, host, port, pinned.node), isAsking: false }
    return { node: topology.nodeAt(host, port, pinned.node), isAsking: true }
  }

  /**
   * Chooses between connections for scripts and for everything else; false if the request would overtake an earlier
   * one.
   */
  #chooseUse(): boolean {
    const use = this.#client.request.command.way === 'script' ? 'scripts' : 'commands'
    if (this.#client.slots.owed === 0) this.#sender.use = use
    // Requests after a script follow it over its connection.
    return use === this.#sender.use || use === 'commands'
  }

  #route(): boolean {
    const client = this.#client
    const { request } = client
    const { command } = request
    const { name } = command
    if (!this.#chooseUse()) return client.waitForReplies()
    const { shield } = client.host
    const seen = shield?.see(client, command, client) ?? client
    if (seen === 'held') return false
    if (seen === 'answered') return true
    if (!this.#settings.topology.isSpread) {
      this.#sender.send(command, request.copy(), -1, seen, client.slots.take())
      return true
    }
    if (name === 'KEYS') return this.#sender.keys(seen)
    if (name === 'SCAN' && client.args.length >= 2) return this.#sender.scan(seen)
    const join = everywhere[name]
    if (join !== undefined) {
      this.#sender.sendEverywhere(join, seen)
      return true
    }
    if (isSplittable(name)) {
      const split = isCrossSlot(request) ? splitRequest(name, request.list()) : undefined
      if (split !== undefined) {
        this.#sender.sendParts(split.parts, split.join, seen)
        return true
      }
    }
    this.#sender.send(command, request.copy(), slotOf(request), seen, client.slots.take())
    return true
  }

  /** Sends a request whose slot was taken earlier to the node of its key. */
  sendInto(slot: number, command: ProxyCommand, request: Uint8Array, target?: ReplyTarget, lane?: SharedLane): void {
    this.#sender.sendInto(slot, command, request, target, lane)
  }

  sendFor(clients: ReadonlySet<ProxyClient>, request: SharedRequest): void {
    this.#sender.sendFor(clients, request)
  }

  laneFor(hashSlot: number): SharedLane {
    return this.#settings.topology.nodeOf(hashSlot).lane(this.#client.session.snapshot(), this.#sender.use)
  }

  #nodeOf(): UpstreamNode {
    const { topology } = this.#settings
    const slot = slotOf(this.#client.request)
    return slot < 0 ? topology.masters[0]! : topology.nodeOf(slot)
  }
}

function notWhileSubscribed({ name }: ProxyCommand): Buffer {
  const shown = name.toLowerCase().replace(' ', '|')
  return Buffer.from(
    `-ERR Can't execute '${shown}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context\r\n`,
  )
}
