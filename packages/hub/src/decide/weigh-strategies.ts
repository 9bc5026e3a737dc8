import type { StrategyName } from '@firebreak/core'
import type { StrategyTemplate } from '@firebreak/core/rules'
import { bytesText } from './reason.ts'

/** What is known about a hot key's load when its strategy is chosen. */
export interface KeyLoad {
  readonly readsPerSecond: number
  readonly writesPerSecond: number
  /** Mean bytes per access; 0 if no sensor reports them. */
  readonly bytesPerAccess: number
  /** Processes of the services that touch the key: each reloads it after a write. */
  readonly processCount: number
  /** Masters that copies could be spread over; 1 if unknown. */
  readonly nodeCount: number
  /** Staleness that the rule allows; undefined: what the watcher guarantees. */
  readonly maxStalenessMs: number | undefined
}

/** A template and why, in words. */
export interface WeighedStrategy {
  readonly template: StrategyTemplate
  readonly why: string
}

/** A cached value may take at most this fraction of its cache: one key must not evict all others. */
const largestPart = 4
/** A cache whose reloads exceed this fraction of the reads is useless. */
const worthwhileShare = 0.5
/** Below this a cache cannot guarantee anything: the network alone takes that long. */
const strictestMs = 1

/**
 * Chooses among the strategies that a level allows, in order of how much they help: memory, copies, combined
 * increments, a limit, only observing. Each that cannot help is skipped with a reason; the sentence says why the chosen
 * one can.
 */
export function weighStrategies(allowed: readonly StrategyTemplate[], load: KeyLoad): WeighedStrategy {
  const first = allowed[0]!
  if (allowed.length === 1) return { template: first, why: `${first.strategy}: the rule allows nothing else` }
  const against: string[] = []
  for (const name of preference) {
    const template = allowed.find(({ strategy }) => strategy === name)
    if (template === undefined) continue
    const objection = objections[name](load, template)
    if (objection === undefined) {
      const passedOver = against.length === 0 ? '' : `; ${against.join('; ')}`
      return { template, why: `${name}: ${advantages[name](load, template)}${passedOver}` }
    }
    against.push(`not ${name}: ${objection}`)
  }
  return { template: first, why: `${first.strategy}, the rule's first choice: ${against.join('; ')}` }
}

const preference: readonly StrategyName[] = ['LocalCache', 'RedundantKeys', 'Combine', 'RateLimit', 'Observe']

type Judge = (load: KeyLoad, template: StrategyTemplate) => string | undefined

const objections: Record<StrategyName, Judge> = {
  LocalCache({ readsPerSecond, writesPerSecond, processCount, bytesPerAccess, maxStalenessMs }, template) {
    if (template.strategy !== 'LocalCache') return undefined
    if (maxStalenessMs !== undefined && maxStalenessMs < strictestMs) return 'the rule allows no staleness at all'
    const reloads = writesPerSecond * processCount
    if (reloads > readsPerSecond * (1 - worthwhileShare)) {
      return `${count(writesPerSecond)} writes/s to ${count(processCount)} processes are ${count(reloads)} reloads/s for ${count(readsPerSecond)} reads/s`
    }
    if (bytesPerAccess > template.maxBytes / largestPart) {
      return `a value of ${bytesText(bytesPerAccess)} does not fit in a cache of ${bytesText(template.maxBytes)}`
    }
    return undefined
  },
  RedundantKeys({ readsPerSecond, writesPerSecond, nodeCount }, template) {
    if (template.strategy !== 'RedundantKeys') return undefined
    if (nodeCount < 2) return 'there is only one node, which would serve the copies too'
    if (writesPerSecond * template.copyCount > readsPerSecond * worthwhileShare) {
      return `${count(writesPerSecond)} writes/s to ${count(template.copyCount)} copies cost more than ${count(readsPerSecond)} reads/s spread`
    }
    return undefined
  },
  Combine({ readsPerSecond, writesPerSecond }) {
    if (writesPerSecond > readsPerSecond) return undefined
    return `${count(writesPerSecond)} writes/s are fewer than ${count(readsPerSecond)} reads/s, which it does not touch`
  },
  RateLimit: () => undefined,
  Observe: () => undefined,
}

const advantages: Record<StrategyName, (load: KeyLoad, template: StrategyTemplate) => string> = {
  LocalCache({ readsPerSecond, writesPerSecond, processCount }) {
    const kept = writesPerSecond * processCount
    return `${count(readsPerSecond)} reads/s against ${count(kept)} reloads/s after writes`
  },
  RedundantKeys({ readsPerSecond, nodeCount }, template) {
    const copies = template.strategy === 'RedundantKeys' ? template.copyCount : 0
    return `${count(readsPerSecond)} reads/s over ${count(copies)} copies on ${count(nodeCount)} nodes`
  },
  Combine: ({ writesPerSecond }) => `${count(writesPerSecond)} writes/s; the increments among them go out together`,
  RateLimit({ writesPerSecond, readsPerSecond }) {
    if (writesPerSecond > readsPerSecond)
      return `${count(writesPerSecond)} writes/s: only fewer writes help (a counter can be split with splitCounter)`
    return 'only fewer accesses help'
  },
  Observe: () => 'nothing that the rule allows would help',
}

function count(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}
