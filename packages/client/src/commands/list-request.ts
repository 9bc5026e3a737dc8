import { type CommandRow, ListArgs } from '@firebreak/core/commands'
import {
  type ClusterShield,
  type ConnectionFacts,
  type GateRequest,
  getCommand,
  type HotKey,
  type LimitTurn,
  type LoadedHandler,
  type ReadCommand,
  readCommand,
  readCommandOf,
} from '@firebreak/shield'
import { nameOf, writtenBytes } from './command-keys.ts'

type Words = readonly (string | Buffer)[]

/** A command of a client library as the gate sees it; one object for all commands of a connection. */
export class ListRequest implements GateRequest {
  row!: CommandRow
  turn: LimitTurn | undefined
  isAnswerable = true
  isHandshake = false
  canWait = true
  signal: AbortSignal | undefined
  readonly args = new ListArgs()
  readonly whenLoaded: () => LoadedHandler
  readonly #cluster: ClusterShield
  readonly #connection: ConnectionFacts
  #list: Words = []
  #offset = 0

  constructor(cluster: ClusterShield, connection: ConnectionFacts, whenLoaded: () => LoadedHandler) {
    this.#cluster = cluster
    this.#connection = connection
    this.whenLoaded = whenLoaded
  }

  /** Looks at a command; where `name` is given, the list has what follows it. */
  set(row: CommandRow, list: Words, name?: string): void {
    this.row = row
    this.#list = list
    this.#offset = name === undefined ? 0 : 1
    this.args.set(list, name)
  }

  visit(index: number, isWrite: boolean): HotKey | undefined {
    const cluster = this.#cluster
    const at = index - this.#offset
    const name = nameOf(this.#list[at]!)
    if (this.turn === undefined) {
      cluster.count(name, isWrite, isWrite && this.row.hasSingleKey ? writtenBytes(this.#list, at + 1) : 0)
    }
    return cluster.hasHotKeys ? this.#connection.space?.hot.get(name) : undefined
  }

  textAt(index: number): string {
    return String(this.#list[index - this.#offset])
  }

  readOf(hot: HotKey, keyIndex: number): ReadCommand {
    const { name } = this.row
    // With more words it is an error, and only Redis says which.
    if (name === 'GET' && this.args.length === 2) return getCommand(hot)
    return this.#offset === 0 ? readCommandOf(name, this.#list, keyIndex) : readCommand(name, this.#list, keyIndex - 1)
  }
}
