import { type CommandRow, commandOfArgs, forEachKey, isCacheable, ListArgs } from '@firebreak/core'
import {
  type CachedReply,
  type ClusterShield,
  type HotKey,
  type KeySpace,
  type ReadCommand,
  readCommand,
  type Shield,
} from '@firebreak/shield'
import { nameOf, writtenBytes } from '../ioredis/command-keys.ts'
import { OpenTransaction } from '../ioredis/open-transaction.ts'
import type {
  NodeRedisArgument,
  NodeRedisCommandOptions,
  NodeRedisConnection,
  NodeRedisQueue,
} from './node-redis-client.ts'
import { ReplyReader } from './reply-reader.ts'

/** What the connections of one protected client have in common. */
export interface ClientState {
  /** Own commands that change keys without naming them and are not acknowledged. */
  pendingFlushes: number
  /** True while a load that failed goes to Redis the plain way. */
  isBypassing: boolean
}

/**
 * The hooks on one connection of node-redis. Every command enters its queue by `addCommand`, in the order in which Redis
 * gets them, so that is where accesses are counted, own writes are seen and hot reads can be answered.
 */
export class ConnectionHooks {
  readonly transaction: OpenTransaction
  readonly #connection: NodeRedisConnection
  readonly #queue: NodeRedisQueue
  readonly #shield: Shield
  readonly #cluster: ClusterShield
  readonly #state: ClientState
  readonly #replies: ReplyReader
  readonly #args = new ListArgs()
  readonly #bareAdd: NodeRedisQueue['addCommand']
  /** The database that the handshake of a new connection selects. */
  #handshakeDatabase = 0
  #space: KeySpace | undefined
  /** True behind ASKING: the next command must reach the server that was told. */
  #isAsking = false

  /** `isAlone`: the application's own client, which may SELECT, and no connection of a cluster or sentinel. */
  constructor(
    connection: NodeRedisConnection,
    shield: Shield,
    cluster: ClusterShield,
    state: ClientState,
    isAlone: boolean,
  ) {
    this.#connection = connection
    this.#queue = connection._getQueue()
    this.#shield = shield
    this.#cluster = cluster
    this.#state = state
    this.transaction = new OpenTransaction(cluster)
    this.#replies = new ReplyReader(connection)
    this.#bareAdd = this.#queue.addCommand
    const { database = 0 } = connection.options ?? {}
    this.#handshakeDatabase = database
    if (isAlone && connection.isReady === true) void this.#askDatabase(database)
    else this.#select(database)
  }

  /** Puts the hook in place; the returned function takes it away again. */
  install(): () => void {
    const queue = this.#queue
    const connection = this.#connection
    const addCommand: NodeRedisQueue['addCommand'] = (args, options) => {
      if (!this.#cluster.isActive || this.#state.isBypassing) return this.#bareAdd.call(queue, args, options)
      return this.#tryIntercept(args, options)
    }
    const onLost = () => {
      this.transaction.reset()
      this.#handshakeDatabase = 0
    }
    const onReady = () => this.#select(this.#handshakeDatabase)
    queue.addCommand = addCommand
    connection.on('reconnecting', onLost)
    connection.on('ready', onReady)
    return () => {
      // Somebody may have wrapped ours since: theirs stays, and ours passes through once the shield is closed.
      if (queue.addCommand === addCommand) delete (queue as Partial<NodeRedisQueue>).addCommand
      connection.off('reconnecting', onLost)
      connection.off('ready', onReady)
      this.transaction.reset()
    }
  }

  /** The key space that a command sent now would see; undefined while that is not known. */
  get space(): KeySpace | undefined {
    return this.#space
  }

  /** Sends a command as the bare client would, hot or not. */
  sendPlainly(args: readonly NodeRedisArgument[], options: NodeRedisCommandOptions | undefined): Promise<unknown> {
    const sendCommand = this.#connection.sendCommand as (...words: unknown[]) => Promise<unknown>
    return plainly(this.#state, () => sendCommand.call(this.#connection, args, options))
  }

  #tryIntercept(args: readonly NodeRedisArgument[], options: NodeRedisCommandOptions | undefined): Promise<unknown> {
    let intercepted: Intercepted
    try {
      intercepted = this.#intercept(args, options)
    } catch (error) {
      this.#shield.trouble.note('hook', 'a command could not be counted; it went to Redis as it was', error)
    }
    if (intercepted instanceof Promise) return intercepted
    const sent = this.#bareAdd.call(this.#queue, args, options)
    // Our reaction is the first, so it runs before the application learns of the answer.
    if (intercepted !== undefined) sent.then(intercepted.end, intercepted.end)
    return sent
  }

  /** Counts a command and sees to its hot keys. */
  #intercept(args: readonly NodeRedisArgument[], options: NodeRedisCommandOptions | undefined): Intercepted {
    const list = this.#args.set(args)
    const row = commandOfArgs(list)
    if (row === undefined) return undefined
    if (row.keys.length === 0) return this.#keyless(row, args, options)
    if (row.name === 'WATCH') this.transaction.isWatching = true
    const isAsked = this.#isAsking
    this.#isAsking = false
    const hotKeys = this.#space?.hot
    let limited: HotKey[] | undefined
    let written: HotKey[] | undefined
    let read: HotKey | undefined
    let readIndex = 0
    const visit = (index: number, access: 'read' | 'write') => {
      const name = nameOf(args[index]!)
      const isWrite = access === 'write'
      this.#cluster.count(name, isWrite, isWrite && row.hasSingleKey ? writtenBytes(args, index + 1) : 0)
      const hot = this.#cluster.hasHotKeys ? hotKeys?.get(name) : undefined
      if (hot === undefined) return
      if (hot.limit !== undefined && !this.transaction.isOpen) (limited ??= []).push(hot)
      if (isWrite) (written ??= []).push(hot)
      else {
        read = hot
        readIndex = index
      }
    }
    if (row.hasSingleKey && row.firstKey < args.length && row.access !== 'none') visit(row.firstKey, row.access)
    else forEachKey(row, list, visit)
    if (limited !== undefined) {
      const keyIndex = written === undefined && isCacheable(row, list) ? readIndex : 0
      const held = this.#holdBack(row, args, options, limited, keyIndex)
      if (held !== undefined) return held
    }
    if (written !== undefined) return this.#write(written)
    if (read === undefined || !isCacheable(row, list)) return undefined
    const hot: HotKey = read
    if (isAsked || !this.mayServe(hot) || options?.abortSignal !== undefined) return this.#bypass(hot)
    return this.#serve(row, args, options, hot, readIndex)
  }

  /** Does with a command what its keys' limits say; undefined where it may go on at once. `keyIndex`: 0 for a write. */
  #holdBack(
    row: CommandRow,
    args: readonly NodeRedisArgument[],
    options: NodeRedisCommandOptions | undefined,
    limited: readonly HotKey[],
    keyIndex: number,
  ): Promise<unknown> | undefined {
    // A command of several keys does not wait: it would hold the others.
    const canWait = limited.length === 1 && options?.chainId === undefined
    const signal = options?.abortSignal
    for (const hot of limited) {
      const verdict = hot.limit!.admit(canWait, signal)
      if (verdict === undefined) continue
      const refuse = (error: unknown) => {
        // It fails as every aborted command of the library does.
        if (signal?.aborted) return this.sendPlainly(args, options)
        const last = keyIndex === 0 ? undefined : hot.lastReply(readOf(row, args, keyIndex).id)
        if (last === undefined) throw error
        return this.#replies.read(row.name, last.bytes, options?.typeMapping)
      }
      if (!(verdict instanceof Promise)) return Promise.reject(verdict).catch(refuse)
      return verdict.then(() => {
        const served = keyIndex === 0 ? undefined : this.#serve(row, args, options, hot, keyIndex)
        return served instanceof Promise ? served : this.sendPlainly(args, options)
      }, refuse)
    }
    return undefined
  }

  /** Whether a read of a hot key may be answered here at this moment. */
  mayServe(hot: HotKey): boolean {
    return (
      hot.pendingWrites === 0 &&
      this.#connection.isReady === true &&
      !this.transaction.isBinding &&
      this.#state.pendingFlushes === 0 &&
      !this.#state.isBypassing
    )
  }

  #serve(
    row: CommandRow,
    args: readonly NodeRedisArgument[],
    options: NodeRedisCommandOptions | undefined,
    hot: HotKey,
    keyIndex: number,
  ): Intercepted {
    const read = readOf(row, args, keyIndex)
    const now = this.#cluster.now()
    const give = (reply: CachedReply) => this.#replies.read(row.name, reply.bytes, options?.typeMapping)
    const kept = hot.hit(read.id, now)
    if (kept !== undefined) return Promise.resolve(give(kept))
    // A pipeline waits for no one: it reads Redis itself, and the next one finds the reply here.
    if (options?.chainId !== undefined) {
      hot.load(read, now, ignoreReply)
      return this.#bypass(hot)
    }
    let settle!: (value: unknown) => void
    const isLoading = hot.load(read, now, (reply) => {
      settle(reply === undefined ? this.sendPlainly(args, options) : give(reply))
    })
    if (!isLoading) return this.#bypass(hot)
    return new Promise((resolve) => {
      settle = resolve
    })
  }

  #bypass(hot: HotKey): undefined {
    hot.redisReads++
    this.#cluster.tally.bypasses++
    return undefined
  }

  #write(written: readonly HotKey[]): Intercepted {
    for (const hot of written) this.#cluster.beginWrite(hot)
    if (this.transaction.isOpen) {
      for (const hot of written) this.transaction.hold(hot)
      return undefined
    }
    return {
      end: () => {
        for (const hot of written) this.#cluster.endWrite(hot)
      },
    }
  }

  #keyless(
    row: CommandRow,
    args: readonly NodeRedisArgument[],
    options: NodeRedisCommandOptions | undefined,
  ): Intercepted {
    switch (row.name) {
      case 'MULTI':
        this.transaction.isOpen = true
        return undefined
      case 'EXEC':
      case 'DISCARD':
        return { end: this.transaction.end() }
      case 'UNWATCH':
        this.transaction.isWatching = false
        return undefined
      case 'RESET':
        this.transaction.reset()
        this.#select(0)
        return undefined
      case 'ASKING':
        this.#isAsking = true
        return undefined
      case 'SELECT': {
        const database = Number(String(args[1]))
        if (options?.asap === true) this.#handshakeDatabase = database
        else this.#select(database)
        return undefined
      }
      case 'FLUSHALL':
      case 'FLUSHDB':
      case 'SWAPDB':
        this.#state.pendingFlushes++
        this.#cluster.abandon()
        return {
          end: () => {
            this.#state.pendingFlushes--
            this.#cluster.flush()
          },
        }
    }
    return undefined
  }

  #select(database: number): void {
    this.#space = Number.isSafeInteger(database) ? this.#cluster.space(database) : undefined
  }

  /** A connection that stands already may have selected another database, and only the server knows which. */
  async #askDatabase(configured: number): Promise<void> {
    const reply = await this.sendPlainly(['CLIENT', 'INFO'], {}).catch(() => '')
    // A SELECT meanwhile is newer than this answer.
    if (this.#space === undefined) this.#select(Number(/ db=(\d+)/.exec(String(reply))?.[1] ?? configured))
  }
}

/** Nothing to do, what to do when the command is answered, or the answer itself. */
type Intercepted = undefined | { readonly end: () => void } | Promise<unknown>

function readOf(row: CommandRow, args: readonly NodeRedisArgument[], keyIndex: number): ReadCommand {
  const words = row.name.includes(' ') ? 2 : 1
  return readCommand(row.name, args.slice(words), keyIndex - words)
}

const ignoreReply = () => {}

/** Calls what sends commands that go to Redis, hot or not. */
export function plainly<Value>(state: ClientState, send: () => Value): Value {
  const before = state.isBypassing
  state.isBypassing = true
  try {
    return send()
  } finally {
    state.isBypassing = before
  }
}
