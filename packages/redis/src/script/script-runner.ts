import { type RedisArgument, type RedisReply, replyErrorCode, type SendOptions } from '../redis.ts'
import type { RedisScript } from './redis-script.ts'

type Send = (args: [string, ...RedisArgument[]], options: SendOptions) => Promise<RedisReply>

/**
 * EVALSHA first; where the server answers NOSCRIPT (first use, `SCRIPT FLUSH`, a failover) the source is sent with
 * EVAL. A NOSCRIPT answer means that nothing ran, so this is the one repetition that cannot charge twice.
 *
 * Calls that meet NOSCRIPT at the same time share one load: the first sends EVAL, the others wait for it and try
 * EVALSHA again.
 */
export class ScriptRunner {
  readonly #send: Send
  readonly #loading = new Map<string, Promise<unknown>>()

  constructor(send: Send) {
    this.#send = send
  }

  async run(
    script: RedisScript,
    keys: readonly (string | Uint8Array)[],
    args: readonly RedisArgument[],
    options: SendOptions = {},
  ): Promise<RedisReply> {
    const routed = keys.length > 0 ? { asBytes: options.asBytes ?? false, key: keys[0]! } : options
    try {
      return await this.#send(['evalsha', script.sha1, keys.length, ...keys, ...args], routed)
    } catch (error) {
      if (replyErrorCode(error) !== 'NOSCRIPT') throw error
    }
    // On a cluster each node loads for itself, so the shared load is per node at best: the key stands for it.
    const place = `${script.sha1} ${keys.length > 0 ? String(keys[0]) : ''}`
    const running = this.#loading.get(place)
    if (running !== undefined) {
      await running.catch(() => {})
      return this.#evaluate(script, keys, args, routed, 'EVALSHA')
    }
    const load = this.#evaluate(script, keys, args, routed, 'EVAL')
    this.#loading.set(place, load)
    try {
      return await load
    } finally {
      this.#loading.delete(place)
    }
  }

  async #evaluate(
    script: RedisScript,
    keys: readonly (string | Uint8Array)[],
    args: readonly RedisArgument[],
    options: SendOptions,
    how: 'EVAL' | 'EVALSHA',
  ): Promise<RedisReply> {
    if (how === 'EVAL') return this.#send(['eval', script.source, keys.length, ...keys, ...args], options)
    try {
      return await this.#send(['evalsha', script.sha1, keys.length, ...keys, ...args], options)
    } catch (error) {
      if (replyErrorCode(error) !== 'NOSCRIPT') throw error
      return this.#send(['eval', script.source, keys.length, ...keys, ...args], options)
    }
  }
}
