import { FirebreakError, type Runtime, type TimerHandle } from '@firebreak/core'
import {
  type Policy,
  type PolicyVersion,
  parsePolicy,
  type RuleService,
  writePolicyDocument,
} from '@firebreak/limits/policy'
import type { HubStore, StoredPolicy } from '../store/hub-store.ts'

/** A change of the policy in force. */
export interface PolicyChange {
  readonly policy: Policy
  /** The file or call that it came from. */
  readonly origin: string
  /** Who made it, for the audit. */
  readonly who: string
  /** The version to be replaced; it is a conflict if another is in force. @default whichever is in force */
  readonly expected?: number | undefined
}

/** Where changes of a policy go; returns the new version. */
export type ChangePolicy = (change: PolicyChange) => number | Promise<number>

/** Changes of a policy that is only in this process. */
export function changeInProcess(service: RuleService): ChangePolicy {
  return ({ policy, origin, expected }) => {
    checkExpected(service, expected)
    return service.load(policy, origin)
  }
}

/** The parts of a hub's store used here. */
export type PolicyStore = Pick<HubStore, 'board' | 'policiesAfter' | 'addPolicy'>

/** The initial policy for a store that never had one. */
export interface FirstPolicy {
  readonly policy: Policy
  readonly origin: string
}

const lookEveryMs = 1000

/**
 * Keeps the policy of a hub's rule service in the hub's store: a restart resumes with the newest version, and hubs that
 * share a store have the same one within a second. A version is stored, with its audit entry, before it is in force.
 */
export class PolicyKeeper {
  readonly #service: RuleService
  readonly #store: PolicyStore
  readonly #runtime: Runtime
  readonly #onTrouble: (error: Error) => void
  #first: FirstPolicy | undefined
  #timer: TimerHandle | undefined
  #isLooking = false

  constructor(service: RuleService, store: PolicyStore, runtime: Runtime, onTrouble: (error: Error) => void) {
    this.#service = service
    this.#store = store
    this.#runtime = runtime
    this.#onTrouble = onTrouble
  }

  /**
   * Loads the store's policy; a store that never had one starts with the given one. A shared store that is unreachable
   * now is loaded when it answers.
   */
  async open(first: FirstPolicy | undefined): Promise<void> {
    this.#first = first
    if (this.#store.board === undefined) return this.#begin()
    this.#timer = this.#runtime.timers.setInterval(() => void this.#look(), lookEveryMs)
    await this.#look()
  }

  /** Stores a version and puts it into force. `FB_POLICY_CONFLICT` if a different version than expected is in force. */
  readonly change = async ({ policy, origin, who, expected }: PolicyChange): Promise<number> => {
    for (;;) {
      await this.#takeOver()
      checkExpected(this.#service, expected)
      const { version: before } = this.#service
      const loadedAtMs = this.#runtime.wallClock.now()
      const stored = { version: before + 1, loadedAtMs, origin, document: documentOf(policy) }
      const audit = {
        at: loadedAtMs,
        who,
        what: 'change rate-limit policy',
        before: { version: before },
        after: { version: stored.version, origin, rules: policy.rules.length },
      }
      const isAdded = await this.#store.addPolicy(stored, audit)
      await this.#takeOver()
      // Otherwise another hub was faster: its version is in force now, and the change is made again on top of it.
      if (isAdded) return stored.version
    }
  }

  close(): void {
    this.#timer?.cancel()
  }

  async #begin(): Promise<void> {
    await this.#takeOver()
    const first = this.#first
    if (first !== undefined && this.#service.version === 0) {
      await this.change({ ...first, who: 'file', expected: 0 }).catch(ignoreConflict)
    }
    this.#first = undefined
  }

  async #takeOver(): Promise<void> {
    for (const stored of await this.#store.policiesAfter(this.#service.version)) {
      if (stored.version > this.#service.version) this.#service.put(this.#versionOf(stored))
    }
  }

  /**
   * An earlier Firebreak may have stored what this one refuses: then the previous policy stays in force under the new
   * number.
   */
  #versionOf({ version, loadedAtMs, origin, document }: StoredPolicy): PolicyVersion {
    try {
      return { version, loadedAtMs, origin, policy: parsePolicy(document, `version ${version}`) }
    } catch (error) {
      this.#onTrouble(error as Error)
      return { version, loadedAtMs, origin: `${origin}, refused`, policy: this.#service.policy }
    }
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      await this.#begin()
    } catch (error) {
      this.#onTrouble(error as Error)
    } finally {
      this.#isLooking = false
    }
  }
}

function checkExpected(service: RuleService, expected: number | undefined): void {
  if (expected === undefined || expected === service.version) return
  throw policyConflict(expected, service.version)
}

function policyConflict(expected: number, version: number): FirebreakError {
  const sentence = `version ${version} of the policy is in force, not ${expected}: check it and resend the change`
  return new FirebreakError('FB_POLICY_CONFLICT', sentence)
}

/** Two hubs that start on an empty store both offer the file; one is enough. */
function ignoreConflict(error: unknown): void {
  if ((error as { code?: string }).code !== 'FB_POLICY_CONFLICT') throw error
}

/** A policy as JSON with the values of its dicts: the files are on the machine where it was read. */
function documentOf(policy: Policy): string {
  const dicts = Object.fromEntries(
    Object.entries(policy.dicts).map(([name, { values }]) => [name, { file: undefined, values }]),
  )
  return writePolicyDocument({ ...policy, dicts }, 'json')
}
