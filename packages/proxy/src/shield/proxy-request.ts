import type { BufferArgs, CommandRow } from '@firebreak/core/commands'
import { encodeCommand } from '@firebreak/core/resp'
import {
  type ClusterShield,
  type ConnectionFacts,
  type GateRequest,
  getCommand,
  type HotKey,
  type KeySpace,
  type LimitTurn,
  type LoadedHandler,
  OpenState,
  type ReadCommand,
  readCommandOf,
} from '@firebreak/shield'
import type { ClientConnection } from '../client/client-connection.ts'
import type { ProxyCommand } from '../commands/proxy-command.ts'
import { bytesFor } from './answer.ts'

/** So long the shield's time goes on with that of the event loop's turns. */
const anchorForMs = 100

/**
 * The request at hand of a client of the proxy, and what is true of that client, as the gate sees it: one object for all.
 * Sessions and transactions are the client's own matter: SELECT, AUTH and the like do not come here, and what is begun
 * with MULTI goes over a pinned connection.
 */
export class ProxyRequest implements GateRequest, ConnectionFacts {
  row!: CommandRow
  isPinned = false
  readonly isReady = true
  readonly isAnswerable = true
  readonly isHandshake = false
  readonly canWait = true
  readonly open = new OpenState()
  /** The request's one key, where it was looked up and counted already. */
  found: HotKey | undefined
  readonly #cluster: ClusterShield
  #client!: ClientConnection
  #command!: ProxyCommand
  #anchorMs = Number.NEGATIVE_INFINITY
  #anchorNow = 0

  constructor(cluster: ClusterShield) {
    this.#cluster = cluster
  }

  /** Only what is true of the client matters. */
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

  /** The shield's time at a time of the turn's clock. Both run alike: its own is read now and then only. */
  now(): number {
    const turnMs = this.#client.host.turn.nowMs
    if (turnMs - this.#anchorMs >= anchorForMs) {
      this.#anchorMs = turnMs
      this.#anchorNow = this.#cluster.now()
    }
    return this.#anchorNow + (turnMs - this.#anchorMs)
  }

  /** A script of this client, or what it sent before the key was hot, may have changed the key. */
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

  select(): void {}

  /** One hash serves both, the counting and the look-up. */
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
    // Copies: a load may be sent after the client's chunk is gone.
    const words = this.#client.request.list().map((word) => Buffer.from(word))
    return readCommandOf(this.row.name, words, keyIndex)
  }

  whenLoaded(): LoadedHandler {
    const client = this.#client
    const command = this.#command
    const { row } = this
    const { version } = client.session
    const slot = client.slots.next
    const request = encodeCommand(client.request.list())
    return (reply) => {
      if (client.isClosed) return
      if (reply !== undefined) client.answer(slot, bytesFor(version, row, reply))
      else client.sendInto(slot, command, request)
    }
  }
}
