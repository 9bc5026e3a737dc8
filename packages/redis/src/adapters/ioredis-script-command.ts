import type { RedisArgument, RedisReply } from '../redis.ts'
import type { IoredisLike } from './ioredis.ts'

/**
 * A script call in the form that ioredis' `sendCommand` takes, used instead of ioredis' own `Command`.
 *
 * ioredis' `Command` copies the arguments three times and joins them in some sixty steps, which for a limit on a hot
 * key is up to a tenth of the cost of a call (`npm run -s bench -- limits --only=redis-hot`). Here they are written
 * once. These calls need nothing else that `Command` does: key prefixes, per-command timeouts, pipelines, text replies.
 * The members are those that ioredis 5 and 6 use on a single connection; a test checks both versions.
 *
 * Sent at most once: see `sentAtMostOnce` for the number that guarantees it.
 */
export class ScriptCommand {
  readonly name: 'evalsha' | 'eval'
  readonly promise: Promise<RedisReply>
  readonly pipelineIndex = -1
  readonly inTransaction = false
  isTraced = false
  isSettled = false
  // Own properties, unbound, as in ioredis: tracing libraries wrap them.
  resolve!: (reply: RedisReply) => void
  reject!: (error: unknown) => void
  readonly #script: string
  readonly #keys: readonly RedisArgument[]
  readonly #args: readonly RedisArgument[]

  constructor(
    name: 'evalsha' | 'eval',
    script: string,
    keys: readonly RedisArgument[],
    args: readonly RedisArgument[],
  ) {
    this.name = name
    this.#script = script
    this.#keys = keys
    this.#args = args
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
  }

  /** For errors and tracing. */
  get args(): RedisArgument[] {
    return [this.#script, this.#keys.length, ...this.#keys, ...this.#args]
  }

  setReplyContext(): void {}

  toWritable(): string | Buffer {
    const keys = this.#keys
    const args = this.#args
    const chunks: Uint8Array[] = []
    let text = `*${3 + keys.length + args.length}\r\n${bulk(this.name)}${bulk(this.#script)}${bulk(keys.length)}`
    for (const parts of [keys, args]) {
      for (const part of parts) {
        if (typeof part === 'object') {
          chunks.push(Buffer.from(`${text}$${part.byteLength}\r\n`), part)
          text = '\r\n'
        } else {
          text += bulk(part)
        }
      }
    }
    return chunks.length === 0 ? text : Buffer.concat([...chunks, Buffer.from(text)])
  }
}

/** One argument of a command as text. */
function bulk(part: string | number): string {
  const text = String(part)
  return `$${typeof part === 'number' ? text.length : Buffer.byteLength(text)}\r\n${text}\r\n`
}

/** Sends the command. Not for a cluster client, which needs more from a command. */
export function sendScript(client: IoredisLike, command: ScriptCommand): Promise<RedisReply> {
  return (client as unknown as { sendCommand(command: ScriptCommand): Promise<RedisReply> }).sendCommand(command)
}
