import { encodeCommand } from '@firebreak/core/resp'
import {
  type CombineListener,
  type CombineOwner,
  type CombinePart,
  type CombineWay,
  Combining,
  type CounterCommand,
  counterValue,
} from '@firebreak/shield'
import type { ProxyClient } from '../client/proxy-client.ts'
import type { ProxyCommand } from '../commands/proxy-command.ts'
import type { UpstreamLostError } from '../errors.ts'
import type { Turn } from '../transport/turn.ts'
import type { ReplyTarget, SharedLane } from '../upstream/shared-lane.ts'
import type { UpstreamNode } from '../upstream/upstream-node.ts'

const minus = 0x2d

/** Why a merged command has no answer. */
interface Lost {
  readonly error: UpstreamLostError
  readonly wasSent: boolean
}

/** A shared connection, or its replacement once it is gone. */
export class LiveLane {
  readonly first: SharedLane
  readonly #node: Pick<UpstreamNode, 'lane'>

  constructor(first: SharedLane, node: Pick<UpstreamNode, 'lane'>) {
    this.first = first
    this.#node = node
  }

  get now(): SharedLane {
    const { first } = this
    return first.isClosed ? this.#node.lane(first.state, first.use) : first
  }
}

/** What combines the increments that go over one connection. */
export interface LaneCombining {
  readonly lane: LiveLane
  readonly combining: Combining
}

/** Finds the combiner of each shared connection. */
export class LaneCombinings {
  readonly #lanes = new WeakMap<SharedLane, LaneCombining>()
  readonly #now: () => number
  /** Increments merged into another command. */
  combined = 0

  constructor(now: () => number) {
    this.#now = now
  }

  /** Where a client's increments of a key go. */
  of({ cluster, lanes, host }: ProxyClient, hashSlot: number): LaneCombining {
    const first = cluster === undefined ? lanes.forCommands() : cluster.laneFor(hashSlot)
    let known = this.#lanes.get(first)
    if (known === undefined) {
      const lane = new LiveLane(first, host.node)
      known = { lane, combining: new Combining(new LaneWay(lane, host.turn, this.#count), this.#now) }
      this.#lanes.set(first, known)
    }
    return known
  }

  readonly #count = (count: number): void => {
    this.combined += count
  }
}

/** An increment of a client, whose reply has its slot. */
export class ProxyPart implements CombinePart {
  readonly command: CounterCommand
  readonly owner: CombineOwner
  readonly client: ProxyClient
  readonly #lane: LiveLane
  readonly #slot: number
  readonly #asked: ProxyCommand

  constructor(command: CounterCommand, owner: CombineOwner, client: ProxyClient, lane: LiveLane) {
    this.command = command
    this.owner = owner
    this.client = client
    this.#lane = lane
    this.#slot = client.slots.next
    this.#asked = client.request.command
  }

  /** The command id under which its latency is recorded. */
  get commandId(): number {
    return this.#asked.id
  }

  answer(reply: Buffer): void {
    this.client.answer(this.#slot, reply)
  }

  fail(reason: unknown): void {
    const { error, wasSent } = reason as Lost
    this.client.onLost(this.#slot, error, wasSent)
  }

  sendAlone(words: readonly (string | Uint8Array)[], listener: CombineListener): void {
    const { client } = this
    const bytes = encodeCommand(words)
    const target = new HeardReply(client, listener)
    if (client.cluster !== undefined) client.cluster.sendInto(this.#slot, this.#asked, bytes, target, this.#lane.first)
    else this.#lane.now.send(bytes, 0, bytes.length, target, this.#slot, this.#asked.id, client.host.turn.nowMs)
  }
}

/** Sends sums over a shared connection, in order. */
export class LaneWay implements CombineWay {
  readonly #lane: LiveLane
  readonly #turn: Turn

  readonly #onCombined: (count: number) => void

  constructor(lane: LiveLane, turn: Turn, onCombined: (count: number) => void) {
    this.#lane = lane
    this.#turn = turn
    this.#onCombined = onCombined
  }

  send(words: readonly (string | Uint8Array)[], parts: readonly CombinePart[], listener: CombineListener): void {
    const all = parts as readonly ProxyPart[]
    const { client, commandId } = all[0]!
    const bytes = encodeCommand(words)
    const target = new HeardReply(undefined, (outcome) => {
      if (outcome.kind === 'value') this.#onCombined(parts.length - 1)
      listener(outcome)
    })
    if (client.cluster !== undefined) {
      const clients = new Set(all.map((part) => part.client))
      client.cluster.sendFor(clients, { bytes, commandId, target, lane: this.#lane.first })
    } else this.#lane.now.send(bytes, 0, bytes.length, target, 0, commandId, client.host.turn.nowMs)
  }

  defer(callback: () => void): void {
    this.#turn.mark({ endEvent() {}, flush: callback }, false)
  }
}

/** Reports the answer to a counter's command, and passes it on to the client if it is only that client's. */
class HeardReply implements ReplyTarget {
  readonly #client: ProxyClient | undefined
  readonly #listener: CombineListener
  #text = ''

  constructor(client: ProxyClient | undefined, listener: CombineListener) {
    this.#client = client
    this.#listener = listener
  }

  onReply(tag: number, bytes: Buffer, start: number, end: number, isLast: boolean, type: number): void {
    this.#text += bytes.toString('latin1', start, end)
    if (isLast) {
      const value = type === minus ? undefined : counterValue(this.#text.slice(1, -2))
      this.#listener(value === undefined ? { kind: 'refused' } : { kind: 'value', value })
    }
    this.#client?.onReply(tag, bytes, start, end, isLast)
  }

  onLost(tag: number, error: UpstreamLostError, wasSent: boolean): void {
    this.#listener({ kind: 'lost', reason: { error, wasSent } satisfies Lost })
    this.#client?.onLost(tag, error, wasSent)
  }
}
