import type { RuleStalenessView } from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'

/** Number of observations per rule that count; at one every few seconds per process these cover minutes of a fleet. */
const maxSamples = 2000
/** A rule whose last observation is older than this is no longer reported. */
const forgetMs = 3_600_000
const maxRules = 1000

interface RuleSamples {
  /** A ring, the newest at `count − 1`. */
  readonly staleMs: Float64Array
  count: number
  lastAt: number
}

/** How stale cached values were found to be, rule by rule, by the canaries of all shields. */
export class StalenessBoard {
  readonly #rules = new Map<string, RuleSamples>()

  add(ruleId: string, staleMs: number, now: number): void {
    let samples = this.#rules.get(ruleId)
    if (samples === undefined) {
      if (this.#rules.size >= maxRules) return
      samples = { staleMs: new Float64Array(maxSamples), count: 0, lastAt: now }
      this.#rules.set(ruleId, samples)
    }
    samples.staleMs[samples.count++ % maxSamples] = staleMs
    samples.lastAt = now
  }

  views(ruleOf: (id: string) => Rule | undefined): RuleStalenessView[] {
    return [...this.#rules].map(([ruleId, samples]) => {
      const sorted = samples.staleMs.slice(0, Math.min(samples.count, maxSamples)).sort()
      const quantile = (share: number) => sorted[Math.ceil(sorted.length * share) - 1]!
      return {
        ruleId,
        observations: samples.count,
        p50Ms: quantile(0.5),
        p99Ms: quantile(0.99),
        maxMs: quantile(1),
        maxStalenessMs: ruleOf(ruleId)?.maxStalenessMs ?? null,
        lastAt: samples.lastAt,
      }
    })
  }

  forget(now: number): void {
    for (const [id, { lastAt }] of this.#rules) if (now - lastAt > forgetMs) this.#rules.delete(id)
  }
}
