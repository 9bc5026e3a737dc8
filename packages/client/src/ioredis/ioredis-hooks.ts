import { type CommandRow, commandOf, forEachKey, isCacheable, ListArgs } from '@firebreak/core'
import {
  type CachedReply,
  type ClusterShield,
  type HotKey,
  KeyLimitedError,
  type KeySpace,
  nextReplyForm,
  type ReadCommand,
  readCommand,
  type Shield,
} from '@firebreak/shield'
import { replyText } from '../reply-text.ts'
import { nameOf, writtenBytes } from './command-keys.ts'
import {
  bufferOfBulk,
  decodeReply,
  flattenPairs,
  type ReplyMapping,
  replyMappingOf,
  textOfBulk,
} from './decode-reply.ts'
import { type AfterLimit, holdBack } from './hold-back.ts'
import { type IoredisClient, type IoredisCommand, isAnswerable, type PipelineStream } from './ioredis-client.ts'
import { onSettled } from './on-settled.ts'
import { OpenTransaction } from './open-transaction.ts'

/** The promise of a GET's text, kept with the reply: every hit hands out the same one. */
const textPromiseForm = nextReplyForm()
/** Marks a command that waits in the client's offline queue: it was counted and will come again. */
const isQueued = Symbol('firebreak.isQueued')

type MarkedCommand = IoredisCommand & { [isQueued]?: true }

/**
 * The hooks on one ioredis client. Every command passes `sendCommand`, also those of pipelines, transactions and scripts,
 * so that is where accesses are counted and own writes are seen; hot reads can be answered there too, but only after
 * ioredis has built its command object. GET and GETBUFFER, the reads of nearly every hot key, are therefore answered in
 * the method already (`bench/client.ts` has both figures).
 */
export class IoredisHooks {
  readonly #client: IoredisClient
  readonly #shield: Shield
  readonly #cluster: ClusterShield
  readonly #transaction: OpenTransaction
  readonly #mapping: ReplyMapping
  readonly #prefix: string | undefined
  readonly #spaces: KeySpace[] = []
  readonly #args = new ListArgs()
  readonly #onClose = () => this.#transaction.reset()
  readonly #onReady = () => {
    this.#hasQueued = false
  }
  readonly #bareSend: IoredisClient['sendCommand']
  readonly #bareGet: IoredisClient['get']
  readonly #bareGetBuffer: IoredisClient['getBuffer']
  /** The last command of one key, its first argument. */
  #lastName = ''
  #isLastWrite = false
  /** True from when a command had to wait for the connection until `ready`, by when all that waited were sent again. */
  #hasQueued = false
  /** Own commands that change keys without naming them and are not acknowledged. */
  #pendingFlushes = 0
  /** True while a load that failed goes to Redis the plain way. */
  #isBypassing = false

  constructor(client: IoredisClient, shield: Shield, cluster: ClusterShield) {
    this.#client = client
    this.#shield = shield
    this.#cluster = cluster
    this.#transaction = new OpenTransaction(cluster)
    this.#mapping = replyMappingOf(client)
    const { keyPrefix = '' } = client.options
    // A prefix of bytes is applied by ioredis; the method hooks leave such a client to the send path.
    this.#prefix = typeof keyPrefix === 'string' ? keyPrefix : undefined
    this.#bareSend = client.sendCommand
    this.#bareGet = client.get
    this.#bareGetBuffer = client.getBuffer
  }

  /** Puts the hooks in place; the returned function takes them away again. */
  install(): () => void {
    const client = this.#client
    const { get, getBuffer } = client
    const sendCommand = this.#makeSend()
    const hotGet = (key: unknown, callback?: unknown): Promise<string | null> => {
      if (callback !== undefined) return get.call(client, key, callback)
      const hot = this.#hotKey(key)
      return (hot && this.#getText(hot, key)) ?? get.call(client, key)
    }
    const hotGetBuffer = (key: unknown, callback?: unknown): Promise<Buffer | null> => {
      if (callback !== undefined) return getBuffer.call(client, key, callback)
      const hot = this.#hotKey(key)
      return (hot && this.#getBuffer(hot, key)) ?? getBuffer.call(client, key)
    }
    // While nothing is hot the methods are ioredis' own: a cold GET pays for the send path only.
    const setMethods = () => {
      const isHot = this.#cluster.hasHotKeys
      Object.assign(client, { get: isHot ? hotGet : get, getBuffer: isHot ? hotGetBuffer : getBuffer })
    }
    const stopListening = this.#cluster.onHotKeys(setMethods)
    Object.assign(client, { sendCommand })
    setMethods()
    client.on('close', this.#onClose)
    client.on('ready', this.#onReady)
    return () => {
      stopListening()
      const own = { get: [get, hotGet], getBuffer: [getBuffer, hotGetBuffer], sendCommand: [sendCommand] } as const
      for (const [name, functions] of Object.entries(own) as ['get', readonly unknown[]][]) {
        // Somebody may have wrapped ours since: theirs stays, and ours passes through once the shield is closed.
        if (functions.includes(client[name])) delete (client as Partial<IoredisClient>)[name]
      }
      client.off('close', this.#onClose)
      client.off('ready', this.#onReady)
      this.#transaction.reset()
    }
  }

  /** The value of a hot string key if memory has it at this moment; undefined asks for a normal read. */
  peek(key: string): string | null | undefined {
    const hot = this.#hotKey(key)
    if (hot === undefined) return undefined
    const reply = hot.hit(getCommand.id, this.#cluster.now())
    if (reply === undefined) return undefined
    this.#cluster.count(hot.name, false, reply.bytes.length)
    return replyText(reply)
  }

  /** The hot key that a method was given, where reads of it may be answered here. */
  #hotKey(key: unknown): HotKey | undefined {
    if (!this.#cluster.isActive || typeof key !== 'string' || this.#prefix === undefined) return undefined
    const found = this.#space().hot.get(nameOf(this.#prefix === '' ? key : this.#prefix + key))
    // A limited key is the send path's.
    return found !== undefined && found.limit === undefined && this.#mayServe(found) ? found : undefined
  }

  #mayServe(hot: HotKey): boolean {
    return (
      hot.pendingWrites === 0 &&
      this.#client.status === 'ready' &&
      !this.#transaction.isBinding &&
      this.#pendingFlushes === 0 &&
      !this.#isBypassing
    )
  }

  #getText(hot: HotKey, key: unknown): Promise<string | null> | undefined {
    const now = this.#cluster.now()
    const reply = hot.hit(getCommand.id, now)
    if (reply === undefined) {
      const bare = () => this.#bareGet.call(this.#client, key)
      return this.#load(hot, now, bare, (loaded) => textOfBulk(loaded.bytes))
    }
    this.#cluster.count(hot.name, false, reply.bytes.length)
    const known = reply.forms[textPromiseForm]
    if (known !== undefined) return known as Promise<string | null>
    const promise = Promise.resolve(replyText(reply) as string | null)
    reply.forms[textPromiseForm] = promise
    return promise
  }

  #getBuffer(hot: HotKey, key: unknown): Promise<Buffer | null> | undefined {
    const now = this.#cluster.now()
    const reply = hot.hit(getCommand.id, now)
    if (reply === undefined) {
      const bare = () => this.#bareGetBuffer.call(this.#client, key)
      return this.#load(hot, now, bare, (loaded) => bufferOfBulk(loaded.bytes))
    }
    this.#cluster.count(hot.name, false, reply.bytes.length)
    return Promise.resolve(bufferOfBulk(reply.bytes) as Buffer | null)
  }

  /** Reads through the watcher; what it cannot read goes the plain way, where it is counted. */
  #load<Value>(
    hot: HotKey,
    now: number,
    bare: () => Promise<Value>,
    decode: (reply: CachedReply) => Value | undefined,
  ): Promise<Value> | undefined {
    let settle!: (value: Value | Promise<Value>) => void
    const isLoading = hot.load(getCommandOf(hot), now, (reply) => {
      const value = reply === undefined ? undefined : decode(reply)
      if (value === undefined) {
        settle(this.#plainly(bare))
        return
      }
      this.#cluster.count(hot.name, false, reply!.bytes.length)
      settle(value)
    })
    if (!isLoading) return undefined
    return new Promise((resolve) => {
      settle = resolve
    })
  }

  /** Calls a method of the client whose command goes to Redis, hot or not. */
  #plainly<Value>(bare: () => Value): Value {
    this.#isBypassing = true
    try {
      return bare()
    } finally {
      this.#isBypassing = false
    }
  }

  /**
   * The hook of the send path. A command that is like the last one (of one key, nothing hot, the connection ready) is
   * most of what an application sends, and only has to be counted: it gets there without leaving this function.
   */
  #makeSend(): IoredisClient['sendCommand'] {
    const client = this.#client
    const cluster = this.#cluster
    const bareSend = this.#bareSend
    return (command, stream, node) => {
      if (!cluster.isActive) return bareSend.call(client, command, stream, node)
      const key = command.args[0]
      const isUsual =
        command.name === this.#lastName &&
        !cluster.hasHotKeys &&
        client.status === 'ready' &&
        !this.#hasQueued &&
        command.isTraced !== true &&
        typeof key === 'string' &&
        key.charCodeAt(0) !== 0
      if (isUsual) cluster.count(key, this.#isLastWrite, this.#isLastWrite ? writtenBytes(command.args, 1) : 0)
      else if (this.#tryIntercept(command, stream, node)) return command.promise
      return bareSend.call(client, command, stream, node)
    }
  }

  #tryIntercept(command: IoredisCommand, stream: PipelineStream | undefined, node: unknown): boolean {
    try {
      return this.#intercept(command, stream, node)
    } catch (error) {
      this.#shield.trouble.note('hook', 'a command could not be counted; it went to Redis as it was', error)
      return false
    }
  }

  /** Counts a command and sees to its hot keys; true where it is answered here. */
  #intercept(command: MarkedCommand, stream: PipelineStream | undefined, node: unknown): boolean {
    const { args } = command
    const row = this.#rowOf(command.name, args[0])
    if (row === undefined || command.isTraced === true || command[isQueued] === true) return false
    if (this.#client.status !== 'ready') {
      command[isQueued] = true
      this.#hasQueued = true
    }
    if (!row.hasSingleKey) return this.#interceptOther(command, stream, node, row)
    const key = args[row.firstKey - 1]
    if (key === undefined) return false
    const name = nameOf(key)
    const isWrite = row.access !== 'read'
    this.#cluster.count(name, isWrite, isWrite ? writtenBytes(args, row.firstKey) : 0)
    if (!this.#cluster.hasHotKeys) return false
    const found = this.#space().hot.get(name)
    if (found === undefined) return false
    const serve = () => !isWrite && row.cacheable && this.#serve(command, stream, node, row, found, row.firstKey - 1)
    if (found.limit !== undefined && !this.#transaction.isOpen) {
      const after: AfterLimit = {
        goOn: () => void (serve() || this.#bareSend.call(this.#client, command, stream, node)),
        last: () => found.limit?.last(readCommand(row.name, args, row.firstKey - 1).id),
        answer: (reply) => this.#answer(command, reply),
      }
      if (holdBack(found.limit.admit(stream === undefined), command, stream, after)) return true
    }
    if (isWrite) this.#write(command, found)
    return serve()
  }

  #rowOf(name: string, subcommand: string | Buffer | undefined): CommandRow | undefined {
    const row = commandOf(name, subcommand)
    if (row?.hasSingleKey && row.firstKey === 1) {
      this.#lastName = name
      this.#isLastWrite = row.access !== 'read'
    }
    return row
  }

  /** Commands with no key, or with more than one place for keys. */
  #interceptOther(
    command: IoredisCommand,
    stream: PipelineStream | undefined,
    node: unknown,
    row: CommandRow,
  ): boolean {
    if (row.keys.length === 0) {
      this.#keyless(command, row)
      return false
    }
    if (row.name === 'WATCH') this.#transaction.isWatching = true
    const { hot } = this.#space()
    const args = this.#args.set(command.args, command.name)
    let lastHot: HotKey | undefined
    let lastIndex = 0
    let refusal: KeyLimitedError | undefined
    forEachKey(row, args, (index, access) => {
      const name = nameOf(command.args[index - 1]!)
      this.#cluster.count(name, access === 'write')
      const found = hot.get(name)
      if (found === undefined) return
      // A command of several keys does not wait: it would hold the others.
      const verdict = this.#transaction.isOpen ? undefined : found.limit?.admit(false)
      if (verdict instanceof KeyLimitedError) refusal ??= verdict
      if (access === 'write') this.#write(command, found)
      else {
        lastHot = found
        lastIndex = index - 1
      }
    })
    if (refusal !== undefined) return holdBack(refusal, command, stream)
    if (lastHot === undefined || !isCacheable(row, args)) return false
    return this.#serve(command, stream, node, row, lastHot, lastIndex)
  }

  #keyless(command: IoredisCommand, row: CommandRow): void {
    switch (row.name) {
      case 'MULTI':
        this.#transaction.isOpen = true
        return
      case 'EXEC':
      case 'DISCARD':
        onSettled(command, this.#transaction.end())
        return
      case 'UNWATCH':
        this.#transaction.isWatching = false
        return
      case 'FLUSHALL':
      case 'FLUSHDB':
      case 'SWAPDB':
        this.#pendingFlushes++
        this.#cluster.abandon()
        onSettled(command, () => {
          this.#pendingFlushes--
          this.#cluster.flush()
        })
    }
  }

  #write(command: IoredisCommand, hot: HotKey): void {
    this.#cluster.beginWrite(hot)
    if (this.#transaction.isOpen) this.#transaction.hold(hot)
    else onSettled(command, () => this.#cluster.endWrite(hot))
  }

  #serve(
    command: IoredisCommand,
    stream: PipelineStream | undefined,
    node: unknown,
    row: CommandRow,
    hot: HotKey,
    keyIndex: number,
  ): boolean {
    if (!this.#mayServe(hot) || !isAnswerable(stream)) return this.#bypass(hot)
    const now = this.#cluster.now()
    const read = row.name === 'GET' ? getCommandOf(hot) : readCommand(row.name, command.args, keyIndex)
    const reply = hot.hit(read.id, now)
    if (reply !== undefined) {
      // A pipeline counts the writes of its commands and sends them all at the last one.
      stream?.write('')
      this.#answer(command, reply)
      return true
    }
    // A pipeline waits for no one: it reads Redis itself, and the next one finds the reply here.
    if (stream !== undefined) {
      hot.load(read, now, ignoreReply)
      return this.#bypass(hot)
    }
    const isLoading = hot.load(read, now, (loaded) => {
      if (loaded !== undefined) this.#answer(command, loaded)
      else this.#bareSend.call(this.#client, command, stream, node)
    })
    return isLoading || this.#bypass(hot)
  }

  #bypass(hot: HotKey): false {
    hot.redisReads++
    this.#cluster.tally.bypasses++
    return false
  }

  #answer(command: IoredisCommand, reply: CachedReply): void {
    const { protocol, isLegacy } = this.#mapping
    const value = decodeReply(reply.bytes, this.#mapping)
    command.setReplyContext?.({ protocol, replyMapping: isLegacy ? 'legacy' : 'resp3' })
    // Of RESP3's shapes ioredis itself makes those that it makes of a reply from the server.
    const isResp3 = protocol === 3 && command.setReplyContext !== undefined
    command.resolve(isResp3 ? value : flattenPairs(command.name, value))
  }

  #space(): KeySpace {
    const { condition, options } = this.#client
    const database = condition?.select ?? options.db ?? 0
    return (this.#spaces[database] ??= this.#cluster.space(database))
  }
}

const getCommand = { id: 'GET' } as const
const ignoreReply = () => {}

function getCommandOf(hot: HotKey): ReadCommand {
  return readCommand('GET', [hot.bytes], 0)
}
