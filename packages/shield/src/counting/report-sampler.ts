import type { TableEntry } from '@firebreak/core'
import { hotSamplingFactor, ThresholdSampler } from '@firebreak/core/heat'
import type { Rule } from '@firebreak/core/rules'

/**
 * Decides which counts of an interval are sent, using core's threshold sampling with the factor that the hub asks for.
 * Keys in the table use a larger factor: they need not be seen crossing, only staying, and the gap between enter and
 * exit level tolerates more noise.
 */
export class ReportSampler {
  readonly #sampler: ThresholdSampler
  #factor = 1
  readonly #ruleFactors = new Map<string, number>()
  #rules: readonly Rule[] = []

  constructor(random: () => number) {
    this.#sampler = new ThresholdSampler(random)
  }

  /** False while everything is sent unchanged. */
  get isSampling(): boolean {
    return this.#factor > 1
  }

  get count(): number {
    return this.#sampler.count
  }

  get writes(): number {
    return this.#sampler.writes
  }

  get bytes(): number {
    return this.#sampler.bytes
  }

  setFactor(factor: number): void {
    if (!(factor >= 1) || factor === this.#factor) return
    this.#factor = factor
    this.#work()
  }

  setRules(rules: readonly Rule[]): void {
    this.#rules = rules
    this.#work()
  }

  /**
   * `entry` is the table's entry for the key; true if the counts should be sent, with the values in `count`, `writes`
   * and `bytes`.
   */
  sample(entry: TableEntry | undefined, count: number, writes: number, bytes: number): boolean {
    const hotFactor = entry === undefined ? undefined : this.#ruleFactors.get(entry.ruleId)
    this.#sampler.factor = hotFactor ?? this.#factor
    return this.#sampler.sample(count, writes, bytes)
  }

  #work(): void {
    this.#ruleFactors.clear()
    for (const { id, levels } of this.#rules) this.#ruleFactors.set(id, hotSamplingFactor(this.#factor, levels))
  }
}
