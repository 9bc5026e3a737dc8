import { type CommandRow, commandOf } from '@firebreak/core/commands'
import {
  type CachedReply,
  type CombinePart,
  Combining,
  type CounterCommand,
  type HotKey,
  isRead,
  type LimitTurn,
  type LoadedReader,
  type Shield,
  type Verdict,
} from '@firebreak/shield'
import { putMethod } from '../clients/own-method.ts'
import { writtenBytes } from '../commands/command-keys.ts'
import { ListRequest } from '../commands/list-request.ts'
import { replyText } from '../replies/reply-text.ts'
import { IoredisPart, IoredisWay } from './combine-commands.ts'
import { decodeReply, flattenPairs, type ReplyMapping, replyMappingOf } from './decode-reply.ts'
import { type IoredisClient, type IoredisCommand, isAnswerable, type PipelineStream } from './ioredis-client.ts'
import type { IoredisConnection } from './ioredis-connection.ts'
import { onSettled } from './on-settled.ts'
import { PipelinePrefix } from './pipeline-prefix.ts'
import { rewriteReply } from './rewrite-reply.ts'
import { isTraced, traceCommand } from './trace-command.ts'

/** Marks a command in the client's offline queue: it has been counted and will come back. */
const isQueued = Symbol('firebreak.isQueued')

/** Marks a command of a cluster: it has been decided before it reaches a node's connection. */
const isDecided = Symbol('firebreak.isDecided')

type MarkedCommand = IoredisCommand & { [isQueued]?: true; [isDecided]?: true }

/**
 * The send path of one client. Every command passes through `sendCommand`, including those of pipelines, transactions
 * and scripts, so this is where the gate decides about each.
 */
export class SendHook {
  readonly #connection: IoredisConnection
  readonly #shield: Shield
  readonly #mapping: ReplyMapping
  readonly #request: ListRequest
  readonly #bareSend: IoredisClient['sendCommand']
  /** The command that the gate is being asked about. */
  #command!: IoredisCommand
  #node: unknown
  /** The pipeline of the command being decided, once something else had to be sent before it. */
  #stream: PipelineStream | undefined
  #prefix: PipelinePrefix | undefined
  /** The last command of one key, its first argument. */
  #lastName = ''
  #isLastWrite = false
  #isLastGet = false
  /** True from the first command that waits for the connection until `ready`, by when all of them have been resent. */
  #hasQueued = false
  /** True once ioredis reports the connection ready, which is after restoring its state. */
  #isReady = false

  constructor(connection: IoredisConnection, shield: Shield) {
    this.#connection = connection
    this.#shield = shield
    this.#mapping = replyMappingOf(connection.client)
    this.#request = new ListRequest(
      connection.cluster,
      connection,
      () => this.#whenLoaded(),
      (command) => this.#partOf(command),
    )
    this.#bareSend = connection.client.sendCommand
    const way = new IoredisWay((command) => this.#send(command, undefined))
    connection.makeCombining = () => new Combining(way, () => connection.now())
  }

  /** Installs the hook; the returned function removes it. */
  install(): () => void {
    const { client } = this.#connection
    const sendCommand = this.#onlyOnce(this.#makeSend())
    this.#isReady = client.status === 'ready'
    const onReady = () => {
      this.#hasQueued = false
      this.#isReady = true
    }
    const onClose = () => {
      this.#isReady = false
    }
    const remove = putMethod(client, 'sendCommand', sendCommand)
    client.on('ready', onReady)
    client.on('close', onClose)
    return () => {
      remove()
      client.off('ready', onReady)
      client.off('close', onClose)
    }
  }

  /** A cluster sends its commands over the connections to its nodes, which are hooked as well. */
  #onlyOnce(send: IoredisClient['sendCommand']): IoredisClient['sendCommand'] {
    const { client, isNode } = this.#connection
    const bareSend = this.#bareSend
    if (client.isCluster === true) {
      return (command: MarkedCommand, stream, node) => {
        command[isDecided] = true
        return send(command, stream, node)
      }
    }
    if (!isNode) return send
    return (command: MarkedCommand, stream, node) =>
      command[isDecided] === true ? bareSend.call(client, command, stream, node) : send(command, stream, node)
  }

  /**
   * The hook of the send path. Most commands of an application resemble the previous one: same name, one key,
   * connection ready. While nothing is hot, such a command only has to be counted. While something is hot, that still
   * holds for reads of cold keys outside pipelines and transactions, and a GET whose reply is in memory is answered at
   * once. If our code fails, the command is sent unchanged.
   */
  #makeSend(): IoredisClient['sendCommand'] {
    const connection = this.#connection
    const { client } = connection
    const bareSend = this.#bareSend
    const isAnswered = this.#makeDecide()
    return (command, stream, node) => {
      try {
        if (isAnswered(command, stream, node)) return command.promise
      } catch (error) {
        this.#passAfter(error, command)
      }
      // Reads that a load could not answer come here too, perhaps in the middle of a pipeline.
      if (stream === undefined && this.#stream !== undefined) return this.#send(command, node)
      return bareSend.call(client, command, this.#prefixed(stream), node)
    }
  }

  /** The decision failed: unless the command only reads, it is guarded as one that may change any key. */
  #passAfter(error: unknown, command: MarkedCommand): void {
    this.#shield.trouble.attempt(() => {
      const isKnownRead = command.name === this.#lastName && !this.#isLastWrite
      const verdict = this.#connection.cluster.gate.passAfter(error, isKnownRead, this.#connection)
      if (verdict.kind === 'guarded') onSettled(command, verdict.end)
    })
  }

  /** Decides about a command: true if it is answered here, false if it must be sent. */
  #makeDecide(): (command: MarkedCommand, stream: PipelineStream | undefined, node: unknown) => boolean {
    const connection = this.#connection
    const { client, cluster } = connection
    return (command, stream, node) => {
      if (!connection.isActive) return false
      const key = command.args[0]
      const isUsual =
        command.name === this.#lastName &&
        client.status === 'ready' &&
        !this.#hasQueued &&
        command.isTraced !== true &&
        typeof key === 'string' &&
        key.charCodeAt(0) !== 0
      if (isUsual && !cluster.hasHotKeys) {
        cluster.count(key, this.#isLastWrite, this.#isLastWrite ? writtenBytes(command.args, 1) : 0)
        return false
      }
      if (isUsual && !this.#isLastWrite && stream === undefined && this.#isFree) {
        const hot = connection.space.hot.get(key)
        if (hot === undefined) {
          cluster.count(key, false, 0)
          return false
        }
        if (this.#isLastGet && this.#answersGet(command, hot)) return true
      }
      const isGivenBack = stream === undefined && this.#stream !== undefined
      return !isGivenBack && this.#intercept(command, stream, node)
    }
  }

  /** True if the gate has no state for this connection and nothing to send before a read. */
  get #isFree(): boolean {
    const { open, owner } = this.#connection
    return !open.isBinding && owner.waiting === undefined && this.#stream === undefined
  }

  /** Answers the GET of a hot key from memory; false if the gate must be asked. */
  #answersGet(command: IoredisCommand, hot: HotKey): boolean {
    const connection = this.#connection
    const { cluster } = connection
    // With more arguments it is an error.
    if (command.args.length !== 1 || hot.isGated || !cluster.gate.mayServe(hot, connection)) return false
    const reply = hot.hit('GET', cluster.now())
    if (reply === undefined) return false
    cluster.count(hot.name, false, reply.bytes.length)
    this.#answer(command, reply)
    return true
  }

  /** True if the command is answered here. */
  #intercept(command: MarkedCommand, stream: PipelineStream | undefined, node: unknown): boolean {
    const row = this.#rowOf(command.name, command.args[0])
    if (command.isTraced === true || command[isQueued] === true) return false
    if (row === undefined) {
      // An unknown command: it must not overtake what is waiting.
      this.#connection.owner.waiting?.flush()
      return false
    }
    if (this.#connection.client.status !== 'ready') {
      command[isQueued] = true
      this.#hasQueued = true
    }
    return this.#ask(row, command, stream, node)
  }

  #rowOf(name: string, subcommand: string | Buffer | undefined): CommandRow | undefined {
    const row = commandOf(name, subcommand)
    if (row?.hasSingleKey && row.firstKey === 1) {
      this.#lastName = name
      this.#isLastWrite = row.access !== 'read'
      this.#isLastGet = row.name === 'GET'
    }
    return row
  }

  /** Carries out the gate's verdict; true if the command is answered here. */
  #ask(
    row: CommandRow,
    command: IoredisCommand,
    stream: PipelineStream | undefined,
    node: unknown,
    turn?: LimitTurn,
  ): boolean {
    const verdict = this.#verdict(row, command, stream, node, turn)
    switch (verdict.kind) {
      case 'pass':
        return false
      case 'loading':
      case 'combined':
        return true
      case 'guarded':
        onSettled(command, verdict.end)
        return false
      case 'rewrite':
        rewriteReply(command, verdict.isOurs, this.#shield.trouble, (another) => this.#send(another, node))
        return false
      case 'hold': {
        this.#connection.open.holdBack(verdict.until, (turn) => {
          let isAnswered = false
          try {
            isAnswered = this.#ask(row, command, stream, node, turn)
          } catch (error) {
            this.#passAfter(error, command)
          }
          if (!isAnswered) this.#sendLate(command, node)
        })
        return true
      }
      case 'answer': {
        // First whatever may fail: a pipeline counts its commands' writes and sends all of them at the last one.
        const value = this.#valueOf(command, verdict.reply)
        this.#prefixed(stream)?.write('')
        command.resolve(value)
        return true
      }
      case 'refuse':
        if (isTraced()) traceCommand(this.#connection.client, command)
        this.#prefixed(stream)?.write('')
        command.reject(verdict.error)
        return true
    }
  }

  #verdict(
    row: CommandRow,
    command: IoredisCommand,
    stream: PipelineStream | undefined,
    node: unknown,
    turn: LimitTurn | undefined,
  ): Verdict {
    const { cluster, open, isOpening } = this.#connection
    const request = this.#request
    const outer = this.#stream
    // What was held back may be sent in the middle of another command's pipeline.
    this.#stream = stream ?? outer
    try {
      if (!this.#isRestoring) open.beforeChange(row, stream !== undefined)
      this.#command = command
      this.#node = node
      request.set(row, command.args, command.name)
      request.turn = turn
      request.canWait = stream === undefined
      request.isAnswerable = isAnswerable(stream)
      request.isHandshake = isOpening
      return cluster.gate.ask(request, this.#connection)
    } catch (error) {
      return cluster.gate.passAfter(error, isRead(row), this.#connection)
    } finally {
      this.#stream = outer
    }
  }

  /** True while ioredis takes a new connection back to its user and database, which changes nothing. */
  get #isRestoring(): boolean {
    const { isOpening, client } = this.#connection
    return isOpening || (client.status === 'ready' && !this.#isReady)
  }

  /** Where a command of a pipeline goes: after whatever had to be sent before it. */
  #prefixed(stream: PipelineStream | undefined): PipelineStream | undefined {
    const prefix = this.#prefix
    this.#prefix = undefined
    return prefix?.own ?? stream
  }

  /** Sends a command that had to wait, either outside any pipeline or before the current pipelined command. */
  #send(command: MarkedCommand, node: unknown): unknown {
    const { client } = this.#connection
    if (client.status !== 'ready') command[isQueued] = true
    if (client.isCluster === true) command[isDecided] = true
    const send = () => this.#bareSend.call(client, command, undefined, node)
    const pipeline = this.#stream
    // A pipeline without a connection has not sent anything yet.
    const socket = pipeline?.isPipeline === true ? pipeline.destination?.redis?.stream : undefined
    if (pipeline === undefined || socket == null) return send()
    this.#prefix ??= new PipelinePrefix(pipeline, socket)
    return this.#prefix.gather(send)
  }

  /** Like `#send`, after the application's call has returned: an error rejects its promise. */
  #sendLate(command: IoredisCommand, node: unknown): void {
    try {
      this.#send(command, node)
    } catch (error) {
      command.reject(error)
    }
  }

  #whenLoaded(): LoadedReader {
    const command = this.#command
    const node = this.#node
    return (reply, answered) => {
      if (reply !== undefined) {
        this.#answer(command, reply)
        return
      }
      onSettled(command, answered)
      this.#sendLate(command, node)
    }
  }

  #partOf(counter: CounterCommand): CombinePart {
    const { client, owner } = this.#connection
    const node = this.#node
    const command = this.#command
    const { commandTimeout } = client.isCluster ? (client.options.redisOptions ?? {}) : client.options
    // It may wait for others before it is sent.
    if (commandTimeout !== undefined) command.setTimeout?.(commandTimeout)
    return new IoredisPart(counter, owner, command, {
      send: () => this.#send(command, node),
      answer: (bytes) => {
        if (isTraced()) traceCommand(client, command)
        command.resolve(this.#decode(command, bytes))
      },
    })
  }

  #answer(command: IoredisCommand, reply: CachedReply): void {
    command.resolve(this.#valueOf(command, reply))
  }

  /** The value that a command answered here resolves to. */
  #valueOf(command: IoredisCommand, reply: CachedReply): unknown {
    if (isTraced()) traceCommand(this.#connection.client, command)
    // Text is shared by all who want text; anything else is decoded again for each.
    const text = command.replyEncoding === 'utf8' ? replyText(reply) : undefined
    return text === undefined ? this.#decode(command, reply.bytes) : text
  }

  /** A reply as ioredis would give it to the command. */
  #decode(command: IoredisCommand, bytes: Uint8Array): unknown {
    const { protocol, isLegacy } = this.#mapping
    const value = decodeReply(bytes, this.#mapping)
    command.setReplyContext?.({ protocol, replyMapping: isLegacy ? 'legacy' : 'resp3' })
    // ioredis itself converts RESP3 types the way it does for a reply from the server.
    const isResp3 = protocol === 3 && command.setReplyContext !== undefined
    return isResp3 ? value : flattenPairs(command.name, value)
  }
}
