import { CentreError } from '../errors.ts'
import { type JuteReader, JuteWriter } from './jute.ts'

/** The calls that we need, by their numbers in the protocol. */
export const opCodes = {
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getChildren: 8,
  ping: 11,
  check: 13,
  multi: 14,
  auth: 100,
  close: -11,
} as const

/** How a node is created. */
export type CreateMode = 'persistent' | 'ephemeral' | 'persistent-sequential'

const createFlags: Record<CreateMode, number> = { persistent: 0, ephemeral: 1, 'persistent-sequential': 2 }

/** One step of a transaction. */
export type ZooKeeperOperation =
  | { readonly kind: 'create'; readonly path: string; readonly data: string; readonly mode: CreateMode }
  | { readonly kind: 'delete'; readonly path: string; readonly version: number }
  | { readonly kind: 'setData'; readonly path: string; readonly data: string; readonly version: number }
  | { readonly kind: 'check'; readonly path: string; readonly version: number }

/** What a server says about a node. */
export interface ZooKeeperStat {
  readonly version: number
  readonly modifiedMs: number
  /** The session that an ephemeral node lives with; 0 for others. */
  readonly ephemeralOwner: bigint
}

/** Who may access new nodes: everybody, or only their creator. */
export type ZooKeeperAccess = 'world' | 'creator'

/** Names of the server errors worth distinguishing. */
const errorNames: Record<string, string> = {
  '-4': 'CONNECTION_LOSS',
  '-100': 'API_ERROR',
  '-101': 'NO_NODE',
  '-102': 'NO_AUTH',
  '-103': 'BAD_VERSION',
  '-108': 'NO_CHILDREN_FOR_EPHEMERALS',
  '-110': 'NODE_EXISTS',
  '-111': 'NOT_EMPTY',
  '-112': 'SESSION_EXPIRED',
  '-115': 'AUTH_FAILED',
  '-118': 'SESSION_MOVED',
}

/** The server answered with an error; `zooKeeperCode` is its name as in ZooKeeper's documentation. */
export class ZooKeeperError extends CentreError {
  readonly zooKeeperCode: string

  constructor(errorNumber: number, call: string) {
    const name = errorNames[String(errorNumber)] ?? `ERROR ${errorNumber}`
    super('FB_CENTRE_ZOOKEEPER', `ZooKeeper answered ${name} to ${call}`)
    this.zooKeeperCode = name
  }
}

/** True for a ZooKeeperError of this name. */
export function isZooKeeperError(error: unknown, name: string): boolean {
  return error instanceof ZooKeeperError && error.zooKeeperCode === name
}

/** The body of one operation, the same alone and in a transaction. */
export function encodeOperation(operation: ZooKeeperOperation, access: ZooKeeperAccess): Buffer {
  const writer = new JuteWriter().text(operation.path)
  switch (operation.kind) {
    case 'create':
      writer.text(operation.data).int(1).int(31)
      if (access === 'creator') writer.text('auth').text('')
      else writer.text('world').text('anyone')
      return writer.int(createFlags[operation.mode]).done()
    case 'setData':
      return writer.text(operation.data).int(operation.version).done()
    default:
      return writer.int(operation.version).done()
  }
}

/** A transaction's body: each operation after a header, then the closing header. */
export function encodeMulti(operations: readonly ZooKeeperOperation[], access: ZooKeeperAccess): Buffer {
  const writer = new JuteWriter()
  for (const operation of operations) {
    writer.int(opCodes[operation.kind]).bool(false).int(-1).raw(encodeOperation(operation, access))
  }
  return writer.int(-1).bool(true).int(-1).done()
}

const runtimeInconsistency = -2

/** Reads a transaction's reply; throws the first failed operation's own error if it was rolled back. */
export function readMulti(reader: JuteReader, operations: readonly ZooKeeperOperation[]): void {
  for (let index = 0; ; index++) {
    const type = reader.int()
    const isDone = reader.bool()
    reader.int()
    if (isDone) return
    if (type === opCodes.create) reader.text()
    else if (type === opCodes.setData) readStat(reader)
    else if (type === -1) {
      // Operations that failed only because of another one carry 0 or "runtime inconsistency".
      const errorNumber = reader.int()
      if (errorNumber === 0 || errorNumber === runtimeInconsistency) continue
      const operation = operations[index]!
      throw new ZooKeeperError(errorNumber, `${operation.kind} ${operation.path} in a transaction`)
    }
  }
}

/** Reads a node's stat. */
export function readStat(reader: JuteReader): ZooKeeperStat {
  reader.long()
  reader.long()
  reader.long()
  const modifiedMs = Number(reader.long())
  const version = reader.int()
  reader.int()
  reader.int()
  const ephemeralOwner = reader.long()
  reader.int()
  reader.int()
  reader.long()
  return { version, modifiedMs, ephemeralOwner }
}
