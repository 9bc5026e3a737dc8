import { type CommandRow, commandOf } from '@firebreak/core/commands'
import type { CachedReply, IsOurs, LimitTurn, LoadedHandler, Shield, Verdict } from '@firebreak/shield'
import { putMethod } from '../clients/own-method.ts'
import { writtenBytes } from '../commands/command-keys.ts'
import { ListRequest } from '../commands/list-request.ts'
import { visibleReply } from '../commands/visible-reply.ts'
import { replyText } from '../replies/reply-text.ts'
import { decodeReply, flattenPairs, type ReplyMapping, replyMappingOf } from './decode-reply.ts'
import {
  type IoredisClient,
  type IoredisCommand,
  type IoredisCommandClass,
  isAnswerable,
  type PipelineStream,
} from './ioredis-client.ts'
import type { IoredisConnection } from './ioredis-connection.ts'
import { onSettled } from './on-settled.ts'
import { isTraced, traceCommand } from './trace-command.ts'

/** Marks a command that waits in the client's offline queue: it was counted and will come again. */
const isQueued = Symbol('firebreak.isQueued')

type MarkedCommand = IoredisCommand & { [isQueued]?: true }

/**
 * The send path of one client. Every command passes `sendCommand`, also those of pipelines, transactions and scripts, so
 * that is where the gate is asked what becomes of each.
 */
export class SendHook {
  readonly #connection: IoredisConnection
  readonly #shield: Shield
  readonly #mapping: ReplyMapping
  readonly #request: ListRequest
  readonly #bareSend: IoredisClient['sendCommand']
  /** The command that the gate is asked about. */
  #command!: IoredisCommand
  #node: unknown
  /** The last command of one key, its first argument. */
  #lastName = ''
  #isLastWrite = false
  /** True from when a command had to wait for the connection until `ready`, by when all that waited were sent again. */
  #hasQueued = false

  constructor(connection: IoredisConnection, shield: Shield) {
    this.#connection = connection
    this.#shield = shield
    this.#mapping = replyMappingOf(connection.client)
    this.#request = new ListRequest(connection.cluster, connection, () => this.#whenLoaded())
    this.#bareSend = connection.client.sendCommand
  }

  /** Puts the hook in place; the returned function takes it away again. */
  install(): () => void {
    const { client } = this.#connection
    const sendCommand = this.#makeSend()
    const onReady = () => {
      this.#hasQueued = false
    }
    const remove = putMethod(client, 'sendCommand', sendCommand)
    client.on('ready', onReady)
    return () => {
      remove()
      client.off('ready', onReady)
    }
  }

  /**
   * The hook of the send path. A command that is like the last one (of one key, nothing hot, the connection ready) is
   * most of what an application sends, and only has to be counted: it gets there without leaving this function.
   */
  #makeSend(): IoredisClient['sendCommand'] {
    const connection = this.#connection
    const { client, cluster } = connection
    const bareSend = this.#bareSend
    return (command, stream, node) => {
      if (!connection.isActive) return bareSend.call(client, command, stream, node)
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
      else if (this.#intercept(command, stream, node)) return command.promise
      return bareSend.call(client, command, stream, node)
    }
  }

  /** True where a command is answered here. */
  #intercept(command: MarkedCommand, stream: PipelineStream | undefined, node: unknown): boolean {
    const row = this.#rowOf(command.name, command.args[0])
    if (row === undefined || command.isTraced === true || command[isQueued] === true) return false
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
    }
    return row
  }

  /** Does what the gate says; true where the command is answered here. */
  #ask(
    row: CommandRow,
    command: IoredisCommand,
    stream: PipelineStream | undefined,
    node: unknown,
    turn?: LimitTurn,
  ): boolean {
    this.#command = command
    this.#node = node
    const verdict = this.#verdict(row, command, stream, turn)
    switch (verdict.kind) {
      case 'pass':
        return false
      case 'loading':
        return true
      case 'guarded':
        onSettled(command, verdict.end)
        return false
      case 'rewrite':
        this.#rewrite(command, verdict.isOurs, node)
        return false
      case 'hold': {
        const goOn = (became: LimitTurn) => {
          if (!this.#ask(row, command, stream, node, became)) this.#send(command, node)
        }
        verdict.until.then(() => goOn('paid'), goOn)
        return true
      }
      case 'answer':
      case 'refuse':
        // A pipeline counts the writes of its commands and sends them all at the last one.
        stream?.write('')
        if (verdict.kind === 'answer') this.#answer(command, verdict.reply)
        else {
          if (isTraced()) traceCommand(this.#connection.client, command)
          command.reject(verdict.error)
        }
        return true
    }
  }

  #verdict(
    row: CommandRow,
    { args, name }: IoredisCommand,
    stream: PipelineStream | undefined,
    turn: LimitTurn | undefined,
  ): Verdict {
    const { client, cluster } = this.#connection
    const request = this.#request
    request.set(row, args, name)
    request.turn = turn
    request.canWait = stream === undefined
    request.isAnswerable = isAnswerable(stream)
    request.isHandshake = client.status === 'connect'
    try {
      return cluster.gate.ask(request, this.#connection)
    } catch (error) {
      return this.#shield.passAfter(error)
    }
  }

  /** Takes the names that are ours out of a command's reply, before the command makes text of it. */
  #rewrite(command: IoredisCommand, isOurs: IsOurs, node: unknown): void {
    const { resolve, reject } = command
    const Command = command.constructor as IoredisCommandClass
    const ask = ([name, ...args]: readonly string[]) => {
      const another = new Command(name!.toLowerCase(), args, { replyEncoding: null })
      this.#send(another, node)
      return another.promise
    }
    command.resolve = (value) => {
      const visible = visibleReply(value, isOurs, ask)
      if (!(visible instanceof Promise)) return resolve.call(command, visible)
      return visible.then(resolve.bind(command), reject.bind(command))
    }
  }

  /** Sends a command that had to wait, outside of any pipeline. */
  #send(command: IoredisCommand, node: unknown): void {
    this.#bareSend.call(this.#connection.client, command, undefined, node)
  }

  #whenLoaded(): LoadedHandler {
    const command = this.#command
    const node = this.#node
    return (reply) => {
      if (reply !== undefined) this.#answer(command, reply)
      else this.#send(command, node)
    }
  }

  #answer(command: IoredisCommand, reply: CachedReply): void {
    if (isTraced()) traceCommand(this.#connection.client, command)
    // Text is the same for all who want text; what else there is, is decoded again for each.
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
