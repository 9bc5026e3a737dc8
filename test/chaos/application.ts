import type { Redis } from 'ioredis'
import { VersionOracle } from '../correct/version-oracle.ts'
import type { FaultWindows } from './fault-windows.ts'
import type { ChaosWay } from './ways.ts'

/** Something that a guide promises, and that did not hold. */
export interface Violation {
  /** The promise. */
  readonly oracle: string
  readonly what: string
  /** The faults at that time. */
  readonly faults: readonly string[]
}

export const hotKeys: readonly string[] = ['hot:0', 'hot:1', 'hot:2', 'hot:3']
export const copiedKeys: readonly string[] = ['copy:0', 'copy:1']

/** As the guide on consistency has them. */
const leaseMs = 300
const fallbackTtlMs = 100
const markerMs = 1500
/** A write of a version that is not newer changes nothing, so a late one does not set Redis back. */
const newerOnly = `
if tonumber(redis.call('GET', KEYS[1]) or '0') < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1]) end
return 1`
const pauseMs = 5
/** A call that takes longer than this counts as waiting, whatever its result. */
const patienceMs = 10_000

/** An application that reads and writes in every way, and knows what it may see. */
export class Application {
  readonly violations: Violation[] = []
  calls = 0
  failedCalls = 0
  readonly #ways: readonly ChaosWay[]
  readonly #writer: Redis
  readonly #windows: FaultWindows
  readonly #oracles = new Map([...hotKeys, ...copiedKeys].map((key) => [key, new VersionOracle()] as const))
  #isStopped = false
  #loops: Promise<void>[] = []

  constructor(ways: readonly ChaosWay[], writer: Redis, windows: FaultWindows) {
    this.#ways = ways
    this.#writer = writer
    this.#windows = windows
  }

  start(): void {
    for (const [key, oracle] of this.#oracles) {
      this.#loop(50, () => oracle.write((value) => this.#writer.eval(newerOnly, 1, key, value)))
      for (const way of this.#ways) this.#loop(pauseMs, this.#reader(way, key, oracle))
    }
    for (const way of this.#ways) this.#loop(pauseMs, this.#selfReader(way))
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#loops)
  }

  note(oracle: string, what: string): void {
    if (this.violations.length < 100) {
      this.violations.push({ oracle, what, faults: this.#windows.around(performance.now()) })
    }
  }

  #loop(everyMs: number, turn: () => Promise<void>): void {
    const run = async () => {
      while (!this.#isStopped) {
        await turn()
        await new Promise((resolve) => setTimeout(resolve, everyMs))
      }
    }
    this.#loops.push(run())
  }

  #reader(way: ChaosWay, key: string, oracle: VersionOracle): () => Promise<void> {
    let newest = 0
    return async () => {
      const startedAt = performance.now()
      const value = await this.#call(way, `GET ${key}`, () => way.get(key))
      if (value === undefined || value === null) return
      const version = Number(value)
      const isCopied = key.startsWith('copy:')
      // "For one client, what it reads with commands that are answered from memory never goes backwards".
      if (version < newest && !isCopied) {
        this.note('versions never go back', `${way.name} read ${version} of ${key} after ${newest}`)
      }
      // One step back is reported once, however often it is read.
      newest = version
      this.#checkAge(way, key, oracle.staleMs(value, startedAt), startedAt)
    }
  }

  /** "If the guard dies, nothing is served that is older than": by the guard that the key may have had. */
  #checkAge(way: ChaosWay, key: string, staleMs: number, startedAt: number): void {
    const isUnguarded = this.#windows.isTrackingRefused(startedAt - staleMs, startedAt)
    const promisedMs = key.startsWith('copy:') ? markerMs : leaseMs + (isUnguarded ? fallbackTtlMs : 0)
    // Delays of this process itself are not counted; the proxy runs on the same machine.
    const allowedMs = promisedMs + 50 + 2 * this.#windows.slowMs
    if (staleMs <= allowedMs) return
    const times = `${Math.round(staleMs)} ms old, ${Math.round(allowedMs)} allowed`
    this.note('never older than promised', `${way.name} was given ${key} ${times}`)
  }

  #selfReader(way: ChaosWay): () => Promise<void> {
    let version = 0
    let generation = 0
    return async () => {
      const key = `hot:own:${way.name}:${generation}`
      if (version++ % 20 === 0) {
        const answer = await this.#call(way, `SET ${key}`, () => way.set(key, String(version)))
        // It may still be carried out, after a later one: use another key.
        if (answer === undefined) {
          generation++
          return
        }
        await this.#readsOwn(way, key, version)
        return
      }
      await this.#call(way, `GET ${key}`, () => way.get(key))
    }
  }

  /** "A client reads what it wrote". */
  async #readsOwn(way: ChaosWay, key: string, version: number): Promise<void> {
    const value = await this.#call(way, `GET ${key}`, () => way.get(key))
    if (value === undefined || value === String(version)) return
    this.note('own writes', `${way.name} wrote ${version} to ${key} and read ${value}`)
  }

  /** The answer, or undefined if the call failed. Records a call that fails or waits without a fault that excuses it. */
  async #call<Answer>(way: ChaosWay, what: string, send: () => Promise<Answer>): Promise<Answer | undefined> {
    const startedAt = performance.now()
    this.calls++
    const late = Symbol('late')
    let timer: NodeJS.Timeout | undefined
    try {
      const patience = new Promise<typeof late>((resolve) => {
        timer = setTimeout(() => resolve(late), patienceMs)
      })
      const answer = await Promise.race([send(), patience])
      if (answer !== late) return answer
      throw new Error(`no answer for ${patienceMs / 1000} s`)
    } catch (error) {
      this.failedCalls++
      if (!this.#windows.excusesCall(way.reach, startedAt, performance.now())) {
        this.note('no call fails that a bare client’s would not', `${way.name} ${what}: ${(error as Error).message}`)
      }
      return undefined
    } finally {
      clearTimeout(timer)
    }
  }
}
