import type { TimerHandle } from '@firebreak/core'
import { type CommandArgument, ErrorReply, encodeCommand, PushReply, type RespValue } from '@firebreak/core/resp'
import { RespPipe } from './resp-pipe.ts'
import type { SimulatedProcess } from './simulated-process.ts'
import type { SimulatedReply } from './simulated-redis.ts'
import type { VirtualNetwork } from './virtual-network.ts'

/** How a client behaves when things go wrong. */
export interface RedisLinkOptions {
  /** How long a call waits for its reply. @default 2000 */
  readonly commandTimeoutMs?: number
  /** How long a connection may take to stand. @default 1000 */
  readonly connectTimeoutMs?: number
  /** The longest wait before the next attempt to connect; the first waits a tenth. @default 500 */
  readonly maxReconnectMs?: number
  /** Commands that wait for a connection or a reply; one more is refused. @default 10,000 */
  readonly maxPending?: number
  /** Whether a command whose connection was lost is sent again. @default false */
  readonly resends?: boolean
  readonly username?: string
  readonly password?: string
  /** Speaks RESP3 and gets what the server pushes. */
  readonly onPush?: (items: readonly RespValue[]) => void
}

/** An error that the server answered with: the command did not happen. */
export class ReplyError extends Error {
  constructor(text: string) {
    super(text)
    this.name = 'ReplyError'
  }
}

/** No reply came. */
export class RedisLinkError extends Error {
  /** The command was written: it may have been carried out, now or later. */
  readonly mayHaveHappened: boolean

  constructor(message: string, mayHaveHappened: boolean) {
    super(message)
    this.name = 'RedisLinkError'
    this.mayHaveHappened = mayHaveHappened
  }
}

interface Call {
  readonly bytes: Uint8Array
  readonly asBytes: boolean
  readonly isOnce: boolean
  readonly resolve: (reply: SimulatedReply) => void
  readonly reject: (error: Error) => void
  deadline: TimerHandle | undefined
  wasWritten: boolean
  isSettled: boolean
}

/** A connection that is opened again whenever it is lost, and the calls on it. */
export class RedisLink {
  readonly #process: SimulatedProcess
  readonly #network: VirtualNetwork
  readonly #address: string
  readonly #options: RedisLinkOptions
  readonly #listeners = new Set<() => void>()
  /** Calls that wait for a connection. */
  #waiting: Call[] = []
  /** Calls whose reply is to come. */
  #sent: Call[] = []
  #pipe: RespPipe | undefined
  #isReady = false
  #wasReady = false
  #isClosed = false
  #attempts = 0

  constructor(process: SimulatedProcess, network: VirtualNetwork, address: string, options: RedisLinkOptions) {
    this.#process = process
    this.#network = network
    this.#address = address
    this.#options = options
    this.#connect()
  }

  get isConnected(): boolean {
    return this.#isReady
  }

  send(args: readonly CommandArgument[], asBytes: boolean, isOnce: boolean): Promise<SimulatedReply> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(new RedisLinkError('this client is closed', false))
      if (this.#waiting.length + this.#sent.length >= (this.#options.maxPending ?? 10_000)) {
        return reject(new RedisLinkError('too many calls are waiting', false))
      }
      const call: Call = {
        bytes: encodeCommand(args),
        asBytes,
        isOnce,
        resolve,
        reject,
        deadline: undefined,
        wasWritten: false,
        isSettled: false,
      }
      const timeoutMs = this.#options.commandTimeoutMs ?? 2000
      call.deadline = this.#process.runtime.timers.setTimeout(() => this.#late(call, timeoutMs), timeoutMs)
      if (this.#isReady) this.#write(call)
      else this.#waiting.push(call)
    })
  }

  onReconnect(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  close(): void {
    this.#isClosed = true
    this.#pipe?.destroy()
    this.#lost('this client was closed')
    for (const call of this.#waiting.splice(0)) settle(call, new RedisLinkError('this client was closed', false))
  }

  #write(call: Call): void {
    call.wasWritten = true
    this.#sent.push(call)
    this.#pipe!.write(call.bytes)
  }

  #connect(): void {
    const timers = this.#process.runtime.timers
    const pipe = new RespPipe(this.#network.connect(this.#process, this.#address))
    this.#pipe = pipe
    const tooLong = timers.setTimeout(() => pipe.destroy(), this.#options.connectTimeoutMs ?? 1000)
    pipe.onConnect = () => {
      tooLong.cancel()
      this.#greet(pipe)
    }
    pipe.onReply = (reply) => this.#received(reply)
    pipe.onClose = (reason) => {
      tooLong.cancel()
      if (this.#pipe !== pipe) return
      this.#pipe = undefined
      this.#lost(reason)
      if (!this.#isClosed) this.#reconnect()
    }
  }

  /** Says who it is, and then it is ready: the replies come before all others. */
  #greet(pipe: RespPipe): void {
    const { username = 'default', password, onPush } = this.#options
    const greetings: CommandArgument[][] = []
    if (password !== undefined) greetings.push(['AUTH', username, password])
    if (onPush !== undefined) greetings.push(['HELLO', '3'])
    for (const greeting of greetings) {
      const reject = (): void => pipe.destroy()
      const bytes = encodeCommand(greeting)
      const call = { bytes, asBytes: false, isOnce: true, resolve: () => {}, reject, deadline: undefined }
      this.#sent.push({ ...call, wasWritten: true, isSettled: false })
      pipe.write(bytes)
    }
    this.#isReady = true
    this.#attempts = 0
    for (const call of this.#waiting.splice(0)) if (!call.isSettled) this.#write(call)
    if (this.#wasReady) for (const listener of this.#listeners) listener()
    this.#wasReady = true
  }

  #received(reply: RespValue): void {
    if (reply instanceof PushReply) {
      this.#options.onPush?.(reply.items)
      return
    }
    const call = this.#sent.shift()
    if (call === undefined) this.#drop()
    else if (reply instanceof ErrorReply) settle(call, new ReplyError(reply.text))
    else settle(call, plain(reply, call.asBytes))
  }

  #late(call: Call, timeoutMs: number): void {
    if (call.isSettled) return
    settle(call, new RedisLinkError(`no reply within ${timeoutMs} ms`, call.wasWritten))
    // Replies come in order: if this one does not come, none does, and only a new connection helps.
    if (this.#sent[0] === call) this.#drop()
    else if (!call.wasWritten) this.#waiting = this.#waiting.filter((other) => other !== call)
  }

  #drop(): void {
    this.#isReady = false
    this.#pipe?.destroy()
  }

  #lost(reason: string): void {
    this.#isReady = false
    const again: Call[] = []
    for (const call of this.#sent.splice(0)) {
      if (call.isSettled) continue
      if (this.#options.resends && !call.isOnce && !this.#isClosed) again.push(call)
      else settle(call, new RedisLinkError(`connection lost: ${reason}`, true))
    }
    this.#waiting.unshift(...again)
  }

  #reconnect(): void {
    const longest = this.#options.maxReconnectMs ?? 500
    const limit = Math.min(longest, (longest / 10) * 2 ** this.#attempts++)
    const waitMs = limit * (0.5 + this.#process.runtime.random() / 2)
    this.#process.runtime.timers.setTimeout(() => this.#isClosed || this.#connect(), waitMs)
  }
}

function settle(call: Call, outcome: SimulatedReply | Error): void {
  if (call.isSettled) return
  call.isSettled = true
  call.deadline?.cancel()
  if (outcome instanceof Error) call.reject(outcome)
  else call.resolve(outcome)
}

/** A reply in RESP2's plain shapes. */
function plain(value: RespValue, asBytes: boolean): SimulatedReply {
  if (value instanceof Uint8Array) return asBytes ? value : Buffer.from(value).toString('utf8')
  if (value === null || typeof value !== 'object') return value
  // As ioredis: an error inside a reply (EXEC) is a value.
  if (value instanceof ErrorReply) return new ReplyError(value.text) as unknown as SimulatedReply
  if ('items' in value) return value.items.map((item) => plain(item, asBytes))
  if (Array.isArray(value)) return value.map((item) => plain(item as RespValue, asBytes))
  if ('bytes' in value) return plain(value.bytes, asBytes)
  if ('attributes' in value) return plain(value.value, asBytes)
  return (value as { readonly value: number | bigint }).value
}
