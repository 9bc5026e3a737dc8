import { encodeCommand, textOf } from '@firebreak/core/resp'
import { RedisLinkError, type RedisLinkOptions } from './redis-link.ts'
import { RespPipe } from './resp-pipe.ts'
import type { SimulatedProcess } from './simulated-process.ts'
import type { VirtualNetwork } from './virtual-network.ts'

interface Confirmation {
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

/** Pub/sub on a connection of its own, as `RedisSubscriber` of the room `redis`. Subscriptions are renewed by itself. */
export class SimulatedSubscriber {
  readonly #process: SimulatedProcess
  readonly #network: VirtualNetwork
  readonly #address: string
  readonly #options: RedisLinkOptions
  readonly #channels = new Map<string, (message: string) => void>()
  readonly #confirmations = new Map<string, Confirmation[]>()
  readonly #unconfirmed = new Set<string>()
  readonly #listeners = new Set<() => void>()
  #pipe: RespPipe | undefined
  #isReady = false
  #isRestoring = false
  #isClosed = false

  constructor(process: SimulatedProcess, network: VirtualNetwork, address: string, options: RedisLinkOptions) {
    this.#process = process
    this.#network = network
    this.#address = address
    this.#options = options
    this.#connect(false)
  }

  subscribe(channel: string, listener: (message: string) => void): Promise<void> {
    if (this.#isClosed) return Promise.reject(new RedisLinkError('this subscriber is closed', false))
    this.#channels.set(channel, listener)
    return new Promise((resolve, reject) => {
      const waiting = this.#confirmations.get(channel) ?? []
      waiting.push({ resolve, reject })
      this.#confirmations.set(channel, waiting)
      if (this.#isReady) this.#pipe!.write(encodeCommand(['SUBSCRIBE', channel]))
    })
  }

  async unsubscribe(channel: string): Promise<void> {
    this.#channels.delete(channel)
    if (this.#isReady) this.#pipe!.write(encodeCommand(['UNSUBSCRIBE', channel]))
  }

  onReconnect(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#pipe?.destroy()
    for (const waiting of this.#confirmations.values()) {
      for (const { reject } of waiting) reject(new RedisLinkError('this subscriber is closed', false))
    }
    this.#confirmations.clear()
  }

  #connect(isAgain: boolean): void {
    const { timers } = this.#process.runtime
    const pipe = new RespPipe(this.#network.connect(this.#process, this.#address))
    this.#pipe = pipe
    const tooLong = timers.setTimeout(() => pipe.destroy(), this.#options.connectTimeoutMs ?? 1000)
    // A connection that says nothing may be dead without a word: it is asked every second.
    let isAnswered = true
    const heartbeat = timers.setInterval(() => {
      if (!this.#isReady) return
      if (!isAnswered) return pipe.destroy()
      isAnswered = false
      pipe.write(encodeCommand(['PING']))
    }, this.#options.commandTimeoutMs ?? 2000)
    pipe.onConnect = () => {
      tooLong.cancel()
      this.#ready(pipe, isAgain)
    }
    pipe.onReply = (reply) => {
      isAnswered = true
      if (Array.isArray(reply)) this.#received(reply)
    }
    pipe.onClose = () => {
      tooLong.cancel()
      heartbeat.cancel()
      this.#isReady = false
      if (this.#isClosed) return
      const waitMs = ((this.#options.maxReconnectMs ?? 500) / 2) * (0.5 + this.#process.runtime.random() / 2)
      timers.setTimeout(() => this.#isClosed || this.#connect(true), waitMs)
    }
  }

  #ready(pipe: RespPipe, isAgain: boolean): void {
    const { username = 'default', password } = this.#options
    this.#isReady = true
    if (password !== undefined) pipe.write(encodeCommand(['AUTH', username, password]))
    this.#isRestoring = isAgain
    this.#unconfirmed.clear()
    for (const channel of this.#channels.keys()) {
      this.#unconfirmed.add(channel)
      pipe.write(encodeCommand(['SUBSCRIBE', channel]))
    }
    this.#tellRestored()
  }

  #received(reply: readonly unknown[]): void {
    const [kind, channel, message] = reply.map((item) =>
      item instanceof Uint8Array ? textOf(item, 0, item.length) : item,
    )
    if (kind === 'message') this.#channels.get(String(channel))?.(String(message))
    if (kind !== 'subscribe') return
    for (const { resolve } of this.#confirmations.get(String(channel)) ?? []) resolve()
    this.#confirmations.delete(String(channel))
    this.#unconfirmed.delete(String(channel))
    this.#tellRestored()
  }

  #tellRestored(): void {
    if (!this.#isRestoring || this.#unconfirmed.size > 0) return
    this.#isRestoring = false
    for (const listener of this.#listeners) listener()
  }
}
