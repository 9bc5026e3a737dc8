import type { NodeLoad, Runtime } from '@firebreak/core'
import { ErrorReply, encodeCommand, parseInfo, RespClient, type RespValue } from '@firebreak/core/resp'
import { guardPipe } from '../trouble/guard.ts'
import type { Trouble } from '../trouble/trouble.ts'
import type { Upstream } from '../watcher/upstream.ts'

/** A node's counters since it started. */
interface NodeCounts {
  readonly at: number
  readonly commands: number | undefined
  readonly cpuMs: number | undefined
}

/** What one node did since the last reading. */
export type NodeSample = Omit<NodeLoad, 'redisClusterId' | 'node' | 'slots'>

const timeoutMs = 2000
const leastTripMs = 0.02
const questions = [encodeCommand(['PING']), encodeCommand(['INFO', 'cpu']), encodeCommand(['INFO', 'stats'])]
const encoder = Buffer.concat(questions)

/** Asks one node for its counters, over a separate connection that stays open while it is being measured. */
export class NodeSampler {
  readonly #node: string
  readonly #upstream: Upstream
  readonly #runtime: Runtime
  readonly #trouble: Trouble
  #client: RespClient | undefined
  #last: NodeCounts | undefined
  #isAsking = false
  #isClosed = false

  constructor(node: string, upstream: Upstream, runtime: Runtime, trouble: Trouble) {
    this.#node = node
    this.#upstream = upstream
    this.#runtime = runtime
    this.#trouble = trouble
  }

  /** What it did since the last call; undefined at first, during a call, and if it did not answer. */
  async sample(): Promise<NodeSample | undefined> {
    if (this.#isAsking || this.#isClosed) return undefined
    this.#isAsking = true
    try {
      return await this.#sample()
    } catch {
      // A node that is down has no load; its users will notice anyway.
      this.#drop()
      return undefined
    } finally {
      this.#isAsking = false
    }
  }

  close(): void {
    this.#isClosed = true
    this.#drop()
  }

  async #sample(): Promise<NodeSample | undefined> {
    const { clock } = this.#runtime
    const client = await this.#open()
    const ownMs = await this.#turn()
    const startedAt = clock.now()
    let roundTripMs = 0
    const replies: RespValue[] = []
    await client.batch(encoder, questions.length, (reply, index) => {
      if (index === 0) roundTripMs = Math.max(leastTripMs, clock.now() - startedAt - ownMs)
      replies.push(reply)
    })
    if (this.#isClosed) this.#drop()
    const before = this.#last
    const counts = countsOf(replies, startedAt)
    this.#last = counts
    if (before === undefined) return undefined
    const spanMs = counts.at - before.at
    const commands = difference(counts.commands, before.commands)
    const cpuMs = difference(counts.cpuMs, before.cpuMs)
    const refusal = replies.find((reply) => reply instanceof ErrorReply)
    return {
      spanMs,
      roundTripMs,
      ...(commands !== undefined && { commands }),
      ...(cpuMs !== undefined && { cpuMs }),
      ...(refusal !== undefined && { problem: `INFO was refused: ${(refusal as ErrorReply).text}` }),
    }
  }

  /**
   * How long one turn of this process currently takes: an answer may wait here for that long, which is not the node's
   * fault.
   */
  async #turn(): Promise<number> {
    const { clock, timers } = this.#runtime
    const startedAt = clock.now()
    await new Promise<void>((resolve) => void timers.setImmediate(resolve))
    return clock.now() - startedAt
  }

  async #open(): Promise<RespClient> {
    if (this.#client !== undefined && !this.#client.isClosed) return this.#client
    this.#last = undefined
    this.#client = await RespClient.open(guardPipe(this.#upstream.connect(this.#node), this.#trouble), {
      ...this.#upstream.credentials(),
      address: this.#node,
      name: 'firebreak-load',
      bulk: 'text',
      connectTimeoutMs: timeoutMs,
      replyTimeoutMs: timeoutMs,
      runtime: this.#runtime,
    })
    return this.#client
  }

  #drop(): void {
    this.#client?.close()
    this.#client = undefined
    this.#last = undefined
  }
}

function countsOf(replies: readonly RespValue[], at: number): NodeCounts {
  const [, cpu, stats] = replies.map((reply) =>
    typeof reply === 'string' ? parseInfo(reply) : new Map<string, string>(),
  )
  const number = (fields: ReadonlyMap<string, string>, name: string) => {
    const value = Number(fields.get(name))
    return fields.has(name) && Number.isFinite(value) ? value : undefined
  }
  // Commands run in the main thread; servers before 6.2 only report the whole process.
  const seconds = (suffix: string) => {
    const [system, user] = [number(cpu!, `used_cpu_sys${suffix}`), number(cpu!, `used_cpu_user${suffix}`)]
    return system === undefined || user === undefined ? undefined : system + user
  }
  const cpuSeconds = seconds('_main_thread') ?? seconds('')
  return {
    at,
    commands: number(stats!, 'total_commands_processed'),
    cpuMs: cpuSeconds === undefined ? undefined : cpuSeconds * 1000,
  }
}

/** A counter that went back belongs to a restarted server. */
function difference(now: number | undefined, before: number | undefined): number | undefined {
  return now === undefined || before === undefined || now < before ? undefined : now - before
}
