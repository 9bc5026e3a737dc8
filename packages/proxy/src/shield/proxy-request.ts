import type { BufferArgs, CommandRow } from '@firebreak/core/commands'
import { encodeCommand } from '@firebreak/core/resp'
import {
  type ClusterShield,
  CombineOwner,
  type CombinePart,
  type Combining,
  type ConnectionFacts,
  type CounterCommand,
  type GateRequest,
  getCommand,
  type HotKey,
  type KeySpace,
  type LimitTurn,
  type LoadedReader,
  OpenState,
  type ReadCommand,
  readCommandOf,
} from '@firebreak/shield'
import type { ClientConnection } from '../client/client-connection.ts'
import type { ProxyCommand } from '../commands/proxy-command.ts'
import { bytesFor } from './cached-answer.ts'
import { type LaneCombining, LaneCombinings, ProxyPart } from './proxy-combine.ts'
import { WriteGuard } from './write-guard.ts'

/** How long the shield's time is derived from the event loop's turns before it is read again. */
const anchorForMs = 100

/**
 * The proxy's current request and its client's connection facts, as the gate sees them: one object for all requests.
 * Sessions and transactions are handled elsewhere: SELECT, AUTH and the like do not get here, and whatever MULTI begins
 * goes over a pinned connection.
 */
export class ProxyRequest implements GateRequest, ConnectionFacts {
  row!: CommandRow
  isPinned = false
  readonly isReady = true
  readonly isAnswerable = true
  readonly isHandshake = false
  readonly canWait = true
  readonly open = new OpenState()
  /** The request's only key, if it has already been looked up and counted. */
  found: HotKey | undefined
  readonly #cluster: ClusterShield
  readonly #combinings: LaneCombinings
  /** Where the current increment is combined. */
  #combining: LaneCombining | undefined
  #client!: ClientConnection
  #command!: ProxyCommand
  #anchorMs = Number.NEGATIVE_INFINITY
  #anchorNow = 0

  constructor(cluster: ClusterShield) {
    this.#cluster = cluster
    this.#combinings = new LaneCombinings(() => cluster.now())
  }

  /** Only the facts of the client matter. */
  of(client: ClientConnection): this {
    this.#client = client
    return this
  }

  set(client: ClientConnection, command: ProxyCommand, row: CommandRow, isPinned: boolean): this {
    this.#client = client
    this.#command = command
    this.row = row
    this.isPinned = isPinned
    return this
  }

  get args(): BufferArgs {
    return this.#client.args
  }

  get space(): KeySpace {
    return this.#client.keySpace()
  }

  get signal(): AbortSignal {
    return this.#client.gone
  }

  get turn(): LimitTurn | undefined {
    return this.#client.limitPass
  }

  /**
   * The shield's time for a time of the turn's clock. Both advance together, so the shield's own clock is read only
   * occasionally.
   */
  now(): number {
    const turnMs = this.#client.host.turn.nowMs
    if (turnMs - this.#anchorMs >= anchorForMs) {
      this.#anchorMs = turnMs
      this.#anchorNow = this.#cluster.now()
    }
    return this.#anchorNow + (turnMs - this.#anchorMs)
  }

  /** A script of this client, or something it sent before the key was hot, may have changed the key. */
  isBehind({ ordinal }: HotKey): boolean {
    const { slots, youngestHot } = this.#client
    if (ordinal > youngestHot) {
      this.#client.youngestHot = ordinal
      slots.setFence()
    }
    return slots.isBehindFence
  }

  sendsScript(): void {
    if (!this.isPinned) this.#client.slots.setFence(1)
  }

  select(): () => void {
    return () => {}
  }

  /** The user, or the address of an unauthenticated client. */
  caller(): string {
    const { session, transport } = this.#client
    const isUser = session.username !== undefined || session.hasShownUser
    return isUser ? `user ${session.user}` : `address ${transport.peer.replace(/:\d+$/, '')}`
  }

  get owner(): CombineOwner | undefined {
    return this.#client.combined
  }

  combining({ slot }: HotKey): Combining {
    this.#combining = this.#combinings.of(this.#client, slot)
    return this.#combining.combining
  }

  partOf(command: CounterCommand): CombinePart {
    const client = this.#client
    client.combined ??= new CombineOwner()
    return new ProxyPart(command, client.combined, client, this.#combining!.lane)
  }

  /** Increments merged into another command. */
  get combined(): number {
    return this.#combinings.combined
  }

  bytesAt(index: number): Uint8Array {
    return Buffer.from(this.#client.request.argument(index))
  }

  /** One hash serves both counting and look-up. */
  visit(index: number, isWrite: boolean): HotKey | undefined {
    const { found } = this
    if (found !== undefined) {
      this.found = undefined
      return found
    }
    const { parser, limitPass } = this.#client
    const { bytes } = parser
    const start = parser.startOf(index)
    const end = parser.endOf(index)
    const accesses = this.#cluster.byBytes
    const hash = accesses.take(bytes, start, end)
    if (limitPass === undefined) accesses.noteTaken(bytes, start, end, isWrite ? 0 : -1, hash)
    const table = this.space.byBytes
    return table.size === 0 ? undefined : table.find(bytes, start, end, hash)
  }

  textAt(index: number): string {
    return Buffer.from(this.#client.request.argument(index)).toString()
  }

  readOf(hot: HotKey, keyIndex: number): ReadCommand {
    if (this.row.name === 'GET' && this.args.length === 2) return getCommand(hot)
    // Copied: a load may be sent after the client's chunk is gone.
    const words = this.#client.request.list().map((word) => Buffer.from(word))
    return readCommandOf(this.row.name, words, keyIndex)
  }

  whenLoaded(): LoadedReader {
    const client = this.#client
    const command = this.#command
    const { row } = this
    const { version } = client.session
    const slot = client.slots.next
    const request = encodeCommand(client.request.list())
    return (reply, answered) => {
      if (client.isClosed) return
      if (reply !== undefined) client.answer(slot, bytesFor(version, row, reply))
      else client.sendInto(slot, command, request, new WriteGuard(client, answered))
    }
  }
}
