import { type CommandRow, commandOf, forEachKey, isCacheable, ListArgs } from '@firebreak/core'
import { type CachedReply, type HotKey, KeyLimitedError, readCommand, type Shield } from '@firebreak/shield'
import { replyText } from '../reply-text.ts'
import type { ClientState } from './client-state.ts'
import { nameOf, writtenBytes } from './command-keys.ts'
import { decodeReply, flattenPairs, type ReplyMapping, replyMappingOf } from './decode-reply.ts'
import { getCommandOf, removeOwn } from './get-methods.ts'
import { type AfterLimit, holdBack } from './hold-back.ts'
import { type IoredisClient, type IoredisCommand, isAnswerable, type PipelineStream } from './ioredis-client.ts'
import { onSettled } from './on-settled.ts'

/** Marks a command that waits in the client's offline queue: it was counted and will come again. */
const isQueued = Symbol('firebreak.isQueued')

type MarkedCommand = IoredisCommand & { [isQueued]?: true }

/**
 * The send path of one client. Every command passes `sendCommand`, also those of pipelines, transactions and scripts, so
 * that is where accesses are counted and own writes are seen; hot reads of any command are answered there too.
 */
export class SendHook {
  readonly #state: ClientState
  readonly #shield: Shield
  readonly #mapping: ReplyMapping
  readonly #args = new ListArgs()
  readonly #bareSend: IoredisClient['sendCommand']
  /** The last command of one key, its first argument. */
  #lastName = ''
  #isLastWrite = false
  /** True from when a command had to wait for the connection until `ready`, by when all that waited were sent again. */
  #hasQueued = false

  constructor(state: ClientState, shield: Shield) {
    this.#state = state
    this.#shield = shield
    this.#mapping = replyMappingOf(state.client)
    this.#bareSend = state.client.sendCommand
  }

  /** Puts the hook in place; the returned function takes it away again. */
  install(): () => void {
    const { client } = this.#state
    const sendCommand = this.#makeSend()
    const onReady = () => {
      this.#hasQueued = false
    }
    Object.assign(client, { sendCommand })
    client.on('ready', onReady)
    return () => {
      removeOwn(client, 'sendCommand', [sendCommand])
      client.off('ready', onReady)
    }
  }

  /**
   * The hook of the send path. A command that is like the last one (of one key, nothing hot, the connection ready) is
   * most of what an application sends, and only has to be counted: it gets there without leaving this function.
   */
  #makeSend(): IoredisClient['sendCommand'] {
    const { client, cluster } = this.#state
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
    if (this.#state.client.status !== 'ready') {
      command[isQueued] = true
      this.#hasQueued = true
    }
    if (!row.hasSingleKey) return this.#interceptOther(command, stream, node, row)
    const key = args[row.firstKey - 1]
    if (key === undefined) return false
    const name = nameOf(key)
    const isWrite = row.access !== 'read'
    this.#state.cluster.count(name, isWrite, isWrite ? writtenBytes(args, row.firstKey) : 0)
    if (!this.#state.cluster.hasHotKeys) return false
    const found = this.#state.space.hot.get(name)
    if (found === undefined) return false
    const serve = () => !isWrite && row.cacheable && this.#serve(command, stream, node, row, found, row.firstKey - 1)
    if (found.limit !== undefined && !this.#state.transaction.isOpen) {
      const after: AfterLimit = {
        goOn: () => void (serve() || this.#bareSend.call(this.#state.client, command, stream, node)),
        last: () => found.lastReply(readCommand(row.name, args, row.firstKey - 1).id),
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
    if (row.name === 'WATCH') this.#state.transaction.isWatching = true
    const { hot } = this.#state.space
    const args = this.#args.set(command.args, command.name)
    let lastHot: HotKey | undefined
    let lastIndex = 0
    let refusal: KeyLimitedError | undefined
    forEachKey(row, args, (index, access) => {
      const name = nameOf(command.args[index - 1]!)
      this.#state.cluster.count(name, access === 'write')
      const found = hot.get(name)
      if (found === undefined) return
      // A command of several keys does not wait: it would hold the others.
      const verdict = this.#state.transaction.isOpen ? undefined : found.limit?.admit(false)
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
        this.#state.transaction.isOpen = true
        return
      case 'EXEC':
      case 'DISCARD':
        onSettled(command, this.#state.transaction.end())
        return
      case 'UNWATCH':
        this.#state.transaction.isWatching = false
        return
      case 'FLUSHALL':
      case 'FLUSHDB':
      case 'SWAPDB':
        this.#state.pendingFlushes++
        this.#state.cluster.abandon()
        onSettled(command, () => {
          this.#state.pendingFlushes--
          this.#state.cluster.flush()
        })
    }
  }

  #write(command: IoredisCommand, hot: HotKey): void {
    this.#state.cluster.beginWrite(hot)
    if (this.#state.transaction.isOpen) this.#state.transaction.hold(hot)
    else onSettled(command, () => this.#state.cluster.endWrite(hot))
  }

  #serve(
    command: IoredisCommand,
    stream: PipelineStream | undefined,
    node: unknown,
    row: CommandRow,
    hot: HotKey,
    keyIndex: number,
  ): boolean {
    if (!this.#state.mayServe(hot) || !isAnswerable(stream)) return this.#bypass(hot)
    const now = this.#state.cluster.now()
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
      else this.#bareSend.call(this.#state.client, command, stream, node)
    })
    return isLoading || this.#bypass(hot)
  }

  #bypass(hot: HotKey): false {
    hot.redisReads++
    this.#state.cluster.tally.bypasses++
    return false
  }

  #answer(command: IoredisCommand, reply: CachedReply): void {
    // Text is the same for all who want text; what else there is, each gets anew.
    const text = command.replyEncoding === 'utf8' ? replyText(reply) : undefined
    if (text !== undefined) {
      command.resolve(text)
      return
    }
    const { protocol, isLegacy } = this.#mapping
    const value = decodeReply(reply.bytes, this.#mapping)
    command.setReplyContext?.({ protocol, replyMapping: isLegacy ? 'legacy' : 'resp3' })
    // Of RESP3's shapes ioredis itself makes those that it makes of a reply from the server.
    const isResp3 = protocol === 3 && command.setReplyContext !== undefined
    command.resolve(isResp3 ? value : flattenPairs(command.name, value))
  }
}

const ignoreReply = () => {}
