import { RedisLink, type RedisLinkOptions } from './redis-link.ts'
import type { SimulatedProcess } from './simulated-process.ts'
import { SimulatedSubscriber } from './simulated-subscriber.ts'
import type { VirtualNetwork } from './virtual-network.ts'

/** As `RedisArgument` of the room `redis`, which this room may not import. */
export type SimulatedArgument = string | number | Uint8Array

/** As `RedisReply`. */
export type SimulatedReply =
  | string
  | number
  | bigint
  | boolean
  | null
  | Uint8Array
  | SimulatedReply[]
  | { [field: string]: SimulatedReply }

/** As `SendOptions`. */
export interface SimulatedSendOptions {
  readonly asBytes?: boolean
  readonly key?: string | Uint8Array
}

/** As `RunOptions`. */
export interface SimulatedRunOptions extends SimulatedSendOptions {
  readonly atMostOnce?: boolean
}

/** As `RedisScript`. */
export interface SimulatedScript {
  readonly name: string
  readonly source: string
  readonly sha1: string
}

type Command = readonly [string, ...SimulatedArgument[]]

/** One command's outcome in a pipeline. */
export type PipelineOutcome = { readonly reply: SimulatedReply } | { readonly error: Error }

/**
 * A Redis client for models: the interface `Redis` of the room `redis`, over a virtual network.
 *
 * A call ends in one of three ways: a reply; the server's own error (`ReplyError`: it was refused, nothing happened);
 * or a `RedisLinkError`, whose `mayHaveHappened` says whether the command had been written when its connection was lost
 * or its deadline passed. As node-redis, it does not send such a command again; with `resends` it does, as ioredis, save
 * for a script that is run `atMostOnce`.
 */
export class SimulatedRedis {
  readonly topology = 'standalone' as const
  readonly #process: SimulatedProcess
  readonly #network: VirtualNetwork
  readonly #address: string
  readonly #options: RedisLinkOptions
  readonly #link: RedisLink
  readonly #loading = new Map<string, Promise<unknown>>()

  constructor(process: SimulatedProcess, network: VirtualNetwork, address: string, options: RedisLinkOptions = {}) {
    this.#process = process
    this.#network = network
    this.#address = address
    this.#options = options
    this.#link = new RedisLink(process, network, address, options)
  }

  /** Whether it is connected, as far as this end knows. */
  get isConnected(): boolean {
    return this.#link.isConnected
  }

  send(args: Command, options?: SimulatedSendOptions): Promise<SimulatedReply> {
    return this.#link.send(args, options?.asBytes ?? false, false)
  }

  /** Sends commands in one write; each has its own outcome. */
  pipeline(commands: readonly Command[], options?: SimulatedSendOptions): Promise<PipelineOutcome[]> {
    return Promise.all(
      commands.map((command) =>
        this.send(command, options).then(
          (reply) => ({ reply }),
          (error: Error) => ({ error }),
        ),
      ),
    )
  }

  /** EVALSHA, and EVAL where the server does not know the script; calls that meet this together share one load. */
  async run(
    script: SimulatedScript,
    keys: readonly (string | Uint8Array)[],
    args: readonly SimulatedArgument[],
    options: SimulatedRunOptions = {},
  ): Promise<SimulatedReply> {
    const call = (command: string, text: string): Promise<SimulatedReply> =>
      this.#link.send(
        [command, text, keys.length, ...keys, ...args],
        options.asBytes ?? false,
        options.atMostOnce ?? false,
      )
    for (let isFirst = true; ; isFirst = false) {
      try {
        return await call('EVALSHA', script.sha1)
      } catch (error) {
        if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
      }
      const loading = this.#loading.get(script.sha1)
      if (!isFirst || loading === undefined) break
      await loading.catch(() => {})
    }
    const load = call('EVAL', script.source)
    this.#loading.set(script.sha1, load)
    try {
      return await load
    } finally {
      this.#loading.delete(script.sha1)
    }
  }

  async masters(): Promise<{ readonly address: string; send: SimulatedRedis['send'] }[]> {
    return [{ address: this.#address, send: (args, options) => this.send(args, options) }]
  }

  async subscriber(): Promise<SimulatedSubscriber> {
    return new SimulatedSubscriber(this.#process, this.#network, this.#address, this.#options)
  }

  onReconnect(listener: () => void): () => void {
    return this.#link.onReconnect(listener)
  }

  /** Ends the connection; calls under way are rejected. */
  close(): void {
    this.#link.close()
  }
}
