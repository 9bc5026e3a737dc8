import type { KeyEffect, StatusPayload } from '@firebreak/core'
import { defaultStepMs, isInRollout, type Rule, type RuleRollout } from '@firebreak/core/rules'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import { SlidingWindow } from '../heat/sliding-window.ts'

/** What watching roll-outs needs. */
export interface RolloutWatchOptions {
  readonly rules: () => readonly Rule[]
  readonly alarms: AlarmBoard
  /** Changes a rule; hubs that share a store all try, and the id makes it one change. */
  readonly put: (rule: Rule, name: string) => Promise<void>
}

const windowMs = 15_000
/** Fewer reads than this prove nothing. */
const leastReads = 200
const leastErrors = 5
/** Errors per read in processes with the rule: at most this many times the others', plus this many. */
const errorFactor = 2
const errorSlack = 0.001
/** Processes with the rule may answer at most this much less from memory than the others. */
const hitSlack = 0.05
/** A rule whose keys are answered from memory less often than this is useless. */
const leastHitRate = 0.1
/** How stale a value may be if the rule does not say. */
const defaultStaleMs = 1000

/** What one group of processes did. */
class Group {
  readonly reads = new SlidingWindow(windowMs)
  readonly hits = new SlidingWindow(windowMs)
  readonly errors = new SlidingWindow(windowMs)
  readonly ruleReads = new SlidingWindow(windowMs)
  readonly ruleHits = new SlidingWindow(windowMs)
  /** Number of values that were staler than the rule allows. */
  readonly stale = new SlidingWindow(windowMs)
}

interface WatchedRule {
  readonly with: Group
  readonly without: Group
  /** Totals since then. */
  readonly seen: { readonly with: Evidence; readonly without: Evidence }
  /** The current percentage, and since when. */
  percent: number
  since: number
}

/**
 * The processes that reported in one group, and their reads: of the rule's keys if it is in force there, otherwise of
 * all keys.
 */
interface Evidence {
  readonly processes: Set<string>
  reads: number
}

/** Number of processes counted separately. */
const maxProcesses = 100

/**
 * Compares processes that have a rule with those that do not have it yet, by their statuses, and stops the roll-out if
 * it does harm: more errors, fewer answers from memory, values that are too stale. One that goes well is raised step by
 * step.
 */
export class RolloutWatch {
  readonly #options: RolloutWatchOptions
  readonly #watched = new Map<string, WatchedRule>()
  readonly #changing = new Set<string>()

  constructor(options: RolloutWatchOptions) {
    this.#options = options
  }

  /** Takes what a process has done since its last status. */
  takeStatus(
    { serviceId, instanceId }: { readonly serviceId: string; readonly instanceId: string },
    { counters, keys }: StatusPayload,
    now: number,
  ): void {
    for (const rule of this.#options.rules()) {
      if (!isUnderWay(rule) || (rule.serviceId !== '*' && rule.serviceId !== serviceId)) continue
      const watched = this.#find(rule, now)
      const side = isInRollout(rule.id, rule.rollout.percent, instanceId) ? 'with' : 'without'
      const [group, seen] = [watched[side], watched.seen[side]]
      if (seen.processes.size < maxProcesses) seen.processes.add(instanceId)
      group.reads.add(now, counters.reads)
      group.hits.add(now, counters.localHits + counters.copyReads)
      group.errors.add(now, counters.errors)
      if (side === 'without') seen.reads += counters.reads
      for (const effect of keys) {
        if (effect.ruleId !== rule.id) continue
        addEffect(group, effect, rule, now)
        if (side === 'with') seen.reads += effect.localHits + effect.redisReads
      }
    }
  }

  /** Called once a second. */
  tick(now: number): void {
    const rules = this.#options.rules()
    for (const rule of rules) {
      if (!isUnderWay(rule)) continue
      const watched = this.#find(rule, now)
      const why = badOf(watched, now)
      if (why !== undefined) this.#stop(rule, why)
      else this.#step(rule, watched, now)
    }
    const stopped = new Set<string>()
    for (const { id, rollout } of rules) {
      if (rollout?.stopped === undefined) continue
      stopped.add(`rollout:${id}`)
      const cause = `the roll-out of rule \`${id}\` was stopped: ${rollout.stopped}`
      const retry = 'no process has the rule any more; fix it and raise its rollout again'
      this.#options.alarms.raise({ id: `rollout:${id}`, severity: 'warning', cause, retry })
    }
    this.#options.alarms.keepOnly('rollout', stopped)
    for (const id of this.#watched.keys()) {
      if (!rules.some((rule) => rule.id === id && isUnderWay(rule))) this.#watched.delete(id)
    }
  }

  #stop(rule: RolledOutRule, why: string): void {
    const { steps: _, ...rollout } = rule.rollout
    this.#change(rule, { ...rollout, percent: 0, stopped: `at ${rollout.percent} %: ${why}` })
  }

  #step(rule: RolledOutRule, watched: WatchedRule, now: number): void {
    const { percent, steps = [], stepMs = defaultStepMs } = rule.rollout
    const next = steps.find((step) => step > percent)
    if (next === undefined || percent === 0 || now - watched.since < stepMs) return
    // If nobody read its keys, doing no harm proves nothing. A group without processes is not waited for.
    const { with: ours, without: theirs } = watched.seen
    if (ours.processes.size + theirs.processes.size === 0) return
    if ([ours, theirs].some(({ processes, reads }) => processes.size > 0 && reads < leastReads)) return
    this.#change(rule, { ...rule.rollout, percent: next })
  }

  #change(rule: RolledOutRule, rollout: RuleRollout): void {
    if (this.#changing.has(rule.id)) return
    this.#changing.add(rule.id)
    const { since } = this.#watched.get(rule.id)!
    const name = `rollout-${rule.id}-${rule.rollout.percent}-${rollout.percent}-${Math.floor(since / 60_000)}`
    this.#options
      .put({ ...rule, rollout }, name)
      // An unreachable store has raised its alarm; the next round retries.
      .catch(() => {})
      .finally(() => this.#changing.delete(rule.id))
  }

  /**
   * What is known about the rule at this percentage: another percentage starts over, because other processes have it.
   */
  #find({ id, rollout }: RolledOutRule, now: number): WatchedRule {
    const known = this.#watched.get(id)
    if (known !== undefined && known.percent === rollout.percent) return known
    const evidence = (): Evidence => ({ processes: new Set(), reads: 0 })
    const seen = { with: evidence(), without: evidence() }
    const fresh = { with: new Group(), without: new Group(), seen, percent: rollout.percent, since: now }
    this.#watched.set(id, fresh)
    return fresh
  }
}

type RolledOutRule = Rule & { readonly rollout: RuleRollout }

function isUnderWay(rule: Rule): rule is RolledOutRule {
  const { percent = 100 } = rule.rollout ?? {}
  return rule.mode === 'on' && percent > 0 && percent < 100
}

function addEffect(group: Group, effect: KeyEffect, rule: Rule, now: number): void {
  group.ruleReads.add(now, effect.localHits + effect.redisReads)
  group.ruleHits.add(now, effect.localHits)
  group.errors.add(now, effect.errors)
  const isStale = (effect.staleMs ?? 0) > (rule.maxStalenessMs ?? defaultStaleMs)
  if (isStale) group.stale.add(now, 1)
}

/** The harm to processes that have the rule, in words; undefined if none. */
function badOf({ with: ours, without: theirs }: WatchedRule, now: number): string | undefined {
  if (ours.stale.sum(now) > theirs.stale.sum(now)) return 'values were staler than the rule allows'
  const reads = ours.reads.sum(now)
  const errors = ours.errors.sum(now)
  const otherReads = theirs.reads.sum(now)
  const otherRate = otherReads === 0 ? 0 : theirs.errors.sum(now) / otherReads
  const rate = errors / Math.max(1, reads)
  if (errors >= leastErrors && rate > otherRate * errorFactor + errorSlack)
    return `${percentText(rate)} read errors in processes that have it, ${percentText(otherRate)} in the others`
  const [ruleReads, ruleHits] = [ours.ruleReads.sum(now), ours.ruleHits.sum(now)]
  if (ruleReads >= leastReads && ruleHits / ruleReads < leastHitRate)
    return `${percentText(ruleHits / ruleReads)} of the reads of its keys were answered from memory`
  if (reads < leastReads || otherReads < leastReads) return undefined
  const [hitRate, otherHitRate] = [ours.hits.sum(now) / reads, theirs.hits.sum(now) / otherReads]
  if (hitRate < otherHitRate - hitSlack)
    return `${percentText(hitRate)} answered from memory in processes that have it, ${percentText(otherHitRate)} in the others`
  return undefined
}

function percentText(part: number): string {
  return `${Number((part * 100).toFixed(1))} %`
}
