import { type CommandRow, ListArgs } from '@firebreak/core/commands'
import {
  type ClusterShield,
  type CombinePart,
  type ConnectionFacts,
  type CounterCommand,
  type GateRequest,
  getCommand,
  type HotKey,
  type LimitTurn,
  type LoadedReader,
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
  readonly whenLoaded: () => LoadedReader
  readonly partOf: GateRequest['partOf']
  readonly #cluster: ClusterShield
  readonly #connection: ConnectionFacts
  #list: Words = []
  #offset = 0

  constructor(
    cluster: ClusterShield,
    connection: ConnectionFacts,
    whenLoaded: () => LoadedReader,
    partOf: (command: CounterCommand) => CombinePart = combinesNothing,
  ) {
    this.#cluster = cluster
    this.#connection = connection
    this.whenLoaded = whenLoaded
    this.partOf = partOf
  }

  /** Sets the command; if `name` is given, the list has only its arguments. */
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

  bytesAt(index: number): Uint8Array {
    const argument = this.#list[index - this.#offset]!
    return typeof argument === 'string' ? Buffer.from(argument) : argument
  }

  readOf(hot: HotKey, keyIndex: number): ReadCommand {
    const { name } = this.row
    // With more words it is an error, and only Redis can say which.
    if (name === 'GET' && this.args.length === 2) return getCommand(hot)
    return this.#offset === 0 ? readCommandOf(name, this.#list, keyIndex) : readCommand(name, this.#list, keyIndex - 1)
  }
}

/** For a connection that has nothing to combine in: the gate never asks. */
function combinesNothing(): never {
  throw new Error('this connection does not combine increments')
}
