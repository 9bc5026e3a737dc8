import { type Clock, FirebreakError, wallClock } from '@firebreak/core'
import { type CallParameters, CompiledPolicy, type CompiledRule, type PreparedAnswer } from './compiled-policy.ts'
import { MemoryRuleStore } from './memory-rule-store.ts'
import { writeRule } from './parse-policy.ts'
import { emptyPolicy, type Policy } from './policy.ts'
import { type PolicyDiff, PolicyHistory, type PolicyVersion } from './policy-history.ts'
import type { RuleCounter, RuleStore, StoreAnswer, StoreCall } from './rule-store.ts'

/** Options of a rule service. */
export interface RuleServiceOptions {
  /** @default counters in this process */
  readonly store?: RuleStore
  /** For the times in the history. @default the wall clock */
  readonly clock?: Clock
  /** How many past policies can be viewed and restored. @default 50 */
  readonly maxVersions?: number
}

/** What the service did with a call. */
export interface ServiceAnswer extends PreparedAnswer {
  readonly isCounted: boolean
}

/** A rule with its number, its line, and how often it applied and was exceeded since this policy was loaded. */
export interface RuleInfo {
  readonly return: number
  readonly line: string
  readonly shadow: boolean
  readonly applied: number
  readonly over: number
}

/** The rules that apply to a call, in order, and the counters of those that count. */
interface Applied {
  readonly rules: readonly CompiledRule[]
  readonly counted: readonly CompiledRule[]
  readonly direct: CompiledRule | undefined
  readonly call: StoreCall
}

type Maybe<T> = T | Promise<T>

/**
 * Decides calls by a policy: the first rule that is over its limit wins; a direct rule wins where it appears; if some
 * apply and none is over, the answer is result 1; if none applies, result 0.
 *
 * A call uses the policy in force at its start, so that its answer is consistent. A load replaces the policy in one
 * assignment; counters are in the store and continue for unchanged rules.
 */
export class RuleService {
  readonly #store: RuleStore
  readonly #clock: Clock
  readonly #history: PolicyHistory
  #current: CompiledPolicy

  constructor(options: RuleServiceOptions = {}) {
    this.#store = options.store ?? new MemoryRuleStore()
    this.#clock = options.clock ?? wallClock
    this.#history = new PolicyHistory(options.maxVersions ?? 50)
    this.#current = new CompiledPolicy(emptyPolicy, 0)
  }

  get version(): number {
    return this.#current.version
  }

  get policy(): Policy {
    return this.#current.policy
  }

  /** Puts a policy into force; returns its version. */
  load(policy: Policy, origin = 'api'): number {
    const version = this.#current.version + 1
    this.put({ version, loadedAtMs: this.#clock.now(), origin, policy })
    return version
  }

  /** Puts a policy into force under a version assigned elsewhere; refuses one that is not above the current version. */
  put(given: PolicyVersion): void {
    const { version, policy } = given
    if (version <= this.version) throw new RangeError(`version ${version} is not above ${this.version}`)
    const next = new CompiledPolicy(policy, version)
    const before = new Map(this.#current.rules.map((rule) => [writeRule(rule.rule), rule.counts]))
    for (const rule of next.rules) Object.assign(rule.counts, before.get(writeRule(rule.rule)))
    this.#history.add(given)
    this.#current = next
  }

  /** A kept policy; `FB_POLICY_VERSION` if it is not kept. */
  versionOf(version: number): PolicyVersion {
    return this.#history.get(version)
  }

  /** Restores an earlier policy under a new version. */
  rollback(version: number): number {
    return this.load(this.#history.get(version).policy, `rollback to ${version}`)
  }

  history(): readonly PolicyVersion[] {
    return this.#history.list()
  }

  diff(from: number, to: number): PolicyDiff {
    return this.#history.diff(from, to)
  }

  rules(): RuleInfo[] {
    return this.#current.rules.map(({ rule, counts }) => ({
      return: rule.returnCode,
      line: writeRule(rule),
      shadow: rule.shadow,
      ...counts,
    }))
  }

  /** Decides a call; with `writesThrough` also counts it, in the same step, unless it is denied. */
  browse(parameters: CallParameters, writesThrough = false): Maybe<ServiceAnswer> {
    const policy = this.#current
    const applied = this.#apply(policy, parameters, writesThrough ? 'through' : 'look')
    return then(this.#decide(applied), (answer) => {
      const winner = this.#count(applied, answer)
      const prepared = winner?.answer ?? (applied.rules.length > 0 ? policy.passed : policy.unmatched)
      return { row: prepared.row, json: prepared.json, isDenied: prepared.isDenied, isCounted: answer.isCounted }
    })
  }

  /** Counts a call on every rule that applies to it. */
  update(parameters: CallParameters): Maybe<number> {
    const policy = this.#current
    return then(this.#decide(this.#apply(policy, parameters, 'add')), () => policy.version)
  }

  /** Every rule that a call exceeds, or the one answer that none is exceeded. */
  browseComplete(parameters: CallParameters, writesThrough = false): Maybe<readonly PreparedAnswer[]> {
    const policy = this.#current
    const applied = this.#apply(policy, parameters, writesThrough ? 'through' : 'look', true)
    return then(this.#decide(applied), ({ states }) => {
      const over = applied.rules.filter((rule) => {
        const index = applied.counted.indexOf(rule)
        return !rule.rule.shadow && (index < 0 ? rule.rule.method === 'direct' : states[index]!.isOver)
      })
      if (over.length > 0) return over.map(({ answer }) => answer)
      return [applied.rules.length > 0 ? policy.passed : policy.unmatched]
    })
  }

  /** Takes back a rule's `erase1` or `erase2` entries, once per request id; returns how many counters changed. */
  async feedback(parameters: CallParameters, kind: 'erase1' | 'erase2', requestId?: string): Promise<number> {
    const policy = this.#current
    const { counted, call } = this.#apply(policy, parameters, 'look')
    let changed = 0
    for (const [index, { rule }] of counted.entries()) {
      if (rule[kind] === 0) continue
      if (await this.#store.takeBack(call.counters[index]!, rule[kind], requestId, policy.days)) changed++
    }
    return changed
  }

  /** The value of a rule's counter, by its number, for a call's parameters. */
  async value(returnCode: number, parameters: CallParameters): Promise<{ used: number; usedToday: number }> {
    const policy = this.#current
    const rule = policy.rules.find((candidate) => candidate.rule.returnCode === returnCode)
    if (rule === undefined) throw new FirebreakError('FB_RULE_UNKNOWN', `there is no rule with return=${returnCode}`)
    if (rule.rule.method === 'direct' || !rule.applies(parameters)) return { used: 0, usedToday: 0 }
    const { states } = await this.#decide({
      rules: [rule],
      counted: [rule],
      direct: undefined,
      call: storeCall(policy, parameters, [rule], 'look', 1, false),
    })
    return { used: states[0]!.used, usedToday: states[0]!.usedToday }
  }

  /** Throws if the store cannot be reached. */
  async checkAlive(): Promise<void> {
    await this.#store.checkAlive()
  }

  /** The rules that apply, and the store's call; `isComplete` lets every rule decide whether the call is denied. */
  #apply(policy: CompiledPolicy, parameters: CallParameters, mode: StoreCall['mode'], isComplete = false): Applied {
    const rules: CompiledRule[] = []
    const counted: CompiledRule[] = []
    let direct: CompiledRule | undefined
    let deciding = 0
    let isDirectlyDenied = false
    for (const rule of policy.rules) {
      if (!rule.applies(parameters)) continue
      rules.push(rule)
      if (rule.rule.method !== 'direct') {
        counted.push(rule)
        if (direct === undefined || isComplete) deciding = counted.length
      } else if (!rule.rule.shadow) {
        direct ??= rule
        isDirectlyDenied ||= rule.answer.isDenied
      }
    }
    // The first counter that is over decides whether the call is counted: those that deny come first.
    if (isComplete) counted.sort((a, b) => Number(b.answer.isDenied) - Number(a.answer.isDenied))
    const isDenied = isComplete ? isDirectlyDenied : (direct?.answer.isDenied ?? false)
    return { rules, counted, direct, call: storeCall(policy, parameters, counted, mode, deciding, isDenied) }
  }

  #decide({ call }: Applied): Maybe<StoreAnswer> {
    if (call.counters.length === 0) return { isCounted: call.mode !== 'look' && !call.isDeniedOtherwise, states: [] }
    return this.#store.decide(call)
  }

  /** Counts which rules applied and which were exceeded, and finds the one that decides. */
  #count({ rules, counted, direct, call }: Applied, { states }: StoreAnswer): CompiledRule | undefined {
    let winner: CompiledRule | undefined
    for (const rule of rules) rule.counts.applied++
    for (let index = 0; index < counted.length; index++) {
      if (!states[index]!.isOver) continue
      const rule = counted[index]!
      rule.counts.over++
      if (index < call.deciding && !rule.rule.shadow) winner ??= rule
    }
    if (winner === undefined && direct !== undefined) {
      direct.counts.over++
      return direct
    }
    return winner
  }
}

function storeCall(
  policy: CompiledPolicy,
  parameters: CallParameters,
  counted: readonly CompiledRule[],
  mode: StoreCall['mode'],
  deciding: number,
  isDeniedOtherwise: boolean,
): StoreCall {
  const counters: RuleCounter[] = counted.map((rule) => ({
    key: rule.counterKey(parameters),
    rule: rule.rule,
    denies: rule.answer.isDenied,
  }))
  return { mode, counters, deciding, isDeniedOtherwise, days: policy.days }
}

/** Continues synchronously if the value is there, so that an in-process store costs no turn of the event loop. */
function then<T, R>(value: Maybe<T>, next: (value: T) => R): Maybe<R> {
  return value instanceof Promise ? value.then(next) : next(value)
}
