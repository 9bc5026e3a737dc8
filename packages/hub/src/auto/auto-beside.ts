import { type BesideKeyView, type HistoryEvent, keyText } from '@firebreak/core'
import { type Rule, RuleSet, runsBeside } from '@firebreak/core/rules'
import type { NearKey } from '../heat/near-key.ts'
import type { NearKeys } from '../heat/near-keys.ts'
import type { AutoLevels } from './auto-levels.ts'

export interface AutoBesideOptions {
  readonly engine: Pick<NearKeys, 'shown'>
  readonly levels: AutoLevels
  readonly processCount: (services: ReadonlySet<string>) => number
  readonly nodeCount: (redisClusterId: string) => number
  readonly record: (event: HistoryEvent) => void
}

interface BesideKey {
  readonly rule: Rule
  readonly since: number
  /** When its rate was last high enough. */
  heldAt: number
  reason: string
}

/**
 * What `auto` rules in shadow mode would do, computed alongside the rules that decide: once a second, for the keys
 * shown, by the same judgement as a rule that is on. None of it reaches the table; the history records it like any rule
 * in shadow mode.
 */
export class AutoBeside {
  readonly #options: AutoBesideOptions
  readonly #keys = new Map<NearKey, BesideKey>()
  #rules: RuleSet = new RuleSet([])

  constructor(options: AutoBesideOptions) {
    this.#options = options
  }

  get hasRules(): boolean {
    return this.#rules.rules.length > 0
  }

  setRules(rules: readonly Rule[]): void {
    this.#rules = new RuleSet(rules.filter(runsBeside))
  }

  /** Called once a second. */
  tick(now: number): void {
    if (!this.hasRules && this.#keys.size === 0) return
    const shown = new Set(this.#options.engine.shown())
    for (const near of shown) this.#judge(near, now)
    for (const [near, { rule, heldAt, since, reason }] of this.#keys) {
      if (shown.has(near) && now - heldAt <= rule.minHoldMs && this.#rules.rules.includes(rule)) continue
      this.#keys.delete(near)
      this.#record(near, rule, 'cooled', now, `cooled after ${Math.round((now - since) / 1000)} s (shadow): ${reason}`)
    }
  }

  views(): BesideKeyView[] {
    return [...this.#keys].map(([near, { rule, since, reason }]) => ({
      redisClusterId: near.redisClusterId,
      key: keyText(near.key),
      ruleId: rule.id,
      since,
      reason,
      isHandled: isHandled(near),
    }))
  }

  /** True if an `auto` rule in shadow mode would handle the key. */
  has(near: NearKey): boolean {
    return this.#keys.has(near)
  }

  #judge(near: NearKey, now: number): void {
    const rule = this.#ruleOf(near)
    const level = rule?.levels[0]
    if (rule === undefined || level === undefined) return
    const { levels, processCount, nodeCount } = this.#options
    const { accesses, writes } = near.lastMinute?.recent(now) ?? { accesses: 0, writes: 0 }
    const { redisClusterId, slot } = near
    const readsPerSecond = accesses - writes
    const { enterPerSecond, exitPerSecond, grounds } = levels.judge(
      {
        redisClusterId,
        slot,
        strategies: level.strategies,
        readsPerSecond,
        writesPerSecond: writes,
        processCount: processCount(new Set(near.tracks.flatMap(({ services }) => [...services]))),
        nodeCount: nodeCount(redisClusterId),
        growthPerSecond: 0,
      },
      now,
    )
    const known = this.#keys.get(near)
    if (known !== undefined) {
      if (readsPerSecond >= exitPerSecond) known.heldAt = now
      if (readsPerSecond >= enterPerSecond) known.reason = reasonOf(rule, grounds)
    } else if (accesses > 0 && readsPerSecond >= enterPerSecond) {
      const reason = reasonOf(rule, grounds)
      this.#keys.set(near, { rule, since: now, heldAt: now, reason })
      this.#record(near, rule, 'shadow', now, reason)
    }
  }

  /** The first of the services that touch the key to which one of the rules applies. */
  #ruleOf({ redisClusterId, key, tracks }: NearKey): Rule | undefined {
    for (const { services } of tracks) {
      for (const service of services) {
        const index = this.#rules.match(redisClusterId, service, key)
        if (index >= 0) return this.#rules.rules[index]
      }
    }
    return undefined
  }

  #record({ redisClusterId, key }: NearKey, rule: Rule, kind: 'shadow' | 'cooled', at: number, text: string): void {
    this.#options.record({ at, kind, redisClusterId, key: keyText(key), ruleId: rule.id, text })
  }
}

/** True if a rule that is on does something about the key. */
export function isHandled({ tracks }: NearKey): boolean {
  return tracks.some(
    ({ rule, state }) =>
      rule?.mode === 'on' &&
      state !== undefined &&
      state.phase !== 'warming' &&
      state.entry.strategy.strategy !== 'Observe',
  )
}

function reasonOf(rule: Rule, grounds: string): string {
  return `hot because rule \`${rule.id}\`: ${grounds} (shadow: nothing is delivered)`
}
