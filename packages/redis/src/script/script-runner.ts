import { type RedisArgument, type RedisReply, type RunOptions, replyErrorCode } from '../redis.ts'
import type { RedisScript } from './redis-script.ts'

type Keys = readonly (string | Uint8Array)[]
type Args = readonly RedisArgument[]

/** Sends `EVALSHA digest` or `EVAL source` with the keys and arguments of a call. */
export type SendScript = (
  command: 'evalsha' | 'eval',
  script: string,
  keys: Keys,
  args: Args,
  options: RunOptions | undefined,
) => Promise<RedisReply>

/**
 * Sends EVALSHA first. If the server answers NOSCRIPT (first use, `SCRIPT FLUSH`, failover), sends the source with
 * EVAL. NOSCRIPT means that nothing ran, so this is the one retry that cannot charge twice.
 *
 * Calls that get NOSCRIPT at the same time share one load: the first sends EVAL; the others wait for it and retry
 * EVALSHA.
 */
export class ScriptRunner {
  readonly #send: SendScript
  readonly #loading = new Map<string, Promise<unknown>>()

  constructor(send: SendScript) {
    this.#send = send
  }

  run(script: RedisScript, keys: Keys, args: Args, options?: RunOptions): Promise<RedisReply> {
    // Adds only one promise to the client's: locks and limits run a script on every call.
    return this.#send('evalsha', script.sha1, keys, args, options).then(undefined, (error) => {
      if (replyErrorCode(error) !== 'NOSCRIPT') throw error
      return this.#load(script, keys, args, options)
    })
  }

  async #load(script: RedisScript, keys: Keys, args: Args, options: RunOptions | undefined): Promise<RedisReply> {
    // Each cluster node loads scripts for itself, so a shared load covers one node at best; the key stands for the
    // node.
    const place = `${script.sha1} ${keys.length > 0 ? String(keys[0]) : ''}`
    const running = this.#loading.get(place)
    if (running !== undefined) {
      await running.catch(() => {})
      return this.#runLoaded(script, keys, args, options)
    }
    const load = this.#send('eval', script.source, keys, args, options)
    this.#loading.set(place, load)
    try {
      return await load
    } finally {
      this.#loading.delete(place)
    }
  }

  /** Runs after another call's load. If that failed, or the script is gone again, sends the source. */
  async #runLoaded(script: RedisScript, keys: Keys, args: Args, options: RunOptions | undefined): Promise<RedisReply> {
    try {
      return await this.#send('evalsha', script.sha1, keys, args, options)
    } catch (error) {
      if (replyErrorCode(error) !== 'NOSCRIPT') throw error
      return this.#send('eval', script.source, keys, args, options)
    }
  }
}
