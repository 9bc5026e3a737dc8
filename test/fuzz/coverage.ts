import { Session } from 'node:inspector'

interface ScriptCoverage {
  readonly url: string
  readonly functions: readonly {
    readonly ranges: readonly { readonly startOffset: number; readonly endOffset: number; readonly count: number }[]
  }[]
}

/**
 * Which blocks of our sources have run, by V8's own precise coverage. Only code that is compiled after `start` is counted
 * block by block: targets are imported afterwards.
 */
export class BlockCoverage {
  readonly #session = new Session()
  readonly #seen = new Set<string>()

  start(): void {
    this.#session.connect()
    this.#session.post('Profiler.enable')
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  }

  /** Blocks that have run so far. */
  get size(): number {
    return this.#seen.size
  }

  /** Blocks that ran since the last look and never before. They are seen from now on. */
  take(): Set<string> {
    const fresh = new Set<string>()
    for (const block of this.#blocks()) if (!this.#seen.has(block)) fresh.add(block)
    for (const block of fresh) this.#seen.add(block)
    return fresh
  }

  /** Whether any of these blocks ran since the last look. */
  ranAny(wanted: ReadonlySet<string>): boolean {
    for (const block of this.#blocks()) if (wanted.has(block)) return true
    return false
  }

  #blocks(): string[] {
    const blocks: string[] = []
    // In the same thread the answer comes before `post` returns.
    this.#session.post('Profiler.takePreciseCoverage', (error, answer) => {
      if (error !== null) throw error
      for (const { url, functions } of (answer as { result: ScriptCoverage[] }).result) {
        if (!url.includes('/packages/') || url.includes('node_modules')) continue
        for (const { ranges } of functions) {
          for (const { startOffset, endOffset, count } of ranges) {
            if (count > 0) blocks.push(`${url}:${startOffset}-${endOffset}`)
          }
        }
      }
    })
    return blocks
  }
}
