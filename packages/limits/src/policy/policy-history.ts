import { FirebreakError } from '@firebreak/core'
import { writeRule } from './parse-policy.ts'
import type { Policy } from './policy.ts'

/** A policy that was in force. */
export interface PolicyVersion {
  readonly version: number
  readonly loadedAtMs: number
  /** The file or caller that it came from. */
  readonly origin: string
  readonly policy: Policy
}

/** What changed between two versions, as lines of rules and names. */
export interface PolicyDiff {
  readonly from: number
  readonly to: number
  readonly addedRules: readonly string[]
  readonly removedRules: readonly string[]
  readonly changedDicts: readonly string[]
  readonly changedResults: readonly string[]
  readonly timeZone: readonly [before: string, after: string] | undefined
}

/** The last versions of a policy, the newest last; at most `maxVersions`. */
export class PolicyHistory {
  readonly #versions: PolicyVersion[] = []
  readonly #maxVersions: number

  constructor(maxVersions: number) {
    this.#maxVersions = maxVersions
  }

  add(version: PolicyVersion): void {
    this.#versions.push(version)
    if (this.#versions.length > this.#maxVersions) this.#versions.shift()
  }

  list(): readonly PolicyVersion[] {
    return this.#versions
  }

  get(version: number): PolicyVersion {
    const found = this.#versions.find((candidate) => candidate.version === version)
    if (found === undefined) {
      throw new FirebreakError(
        'FB_POLICY_VERSION',
        `unknown policy version ${version}; kept are ${this.#versions.map(({ version: kept }) => kept).join(', ')}`,
      )
    }
    return found
  }

  diff(from: number, to: number): PolicyDiff {
    const before = this.get(from).policy
    const after = this.get(to).policy
    const rulesBefore = before.rules.map(writeRule)
    const rulesAfter = after.rules.map(writeRule)
    return {
      from,
      to,
      addedRules: rulesAfter.filter((rule) => !rulesBefore.includes(rule)),
      removedRules: rulesBefore.filter((rule) => !rulesAfter.includes(rule)),
      changedDicts: changedNames(before.dicts, after.dicts),
      changedResults: changedNames(before.results, after.results),
      timeZone: before.timeZone === after.timeZone ? undefined : [before.timeZone, after.timeZone],
    }
  }
}

function changedNames(before: Readonly<Record<string, unknown>>, after: Readonly<Record<string, unknown>>): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...names].filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name])).sort()
}
