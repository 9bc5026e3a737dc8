import { type Rule, RuleSet } from '@firebreak/core/rules'
import { compareLines, hasMade, headOf } from '../store/change-line.ts'
import type { HubState, HubStore, StoreChange } from '../store/hub-store.ts'

/** The rules in force: the store's, compiled, with the version that every change raises. */
export class RuleBook {
  readonly #store: HubStore
  readonly #rules = new Map<string, Rule>()
  readonly #listeners: ((rules: RuleSet) => Promise<void> | void)[] = []
  #version: number
  #line: readonly string[]
  #set: RuleSet

  constructor(store: HubStore, { rules, rulesVersion, line }: HubState) {
    this.#store = store
    for (const rule of rules) this.#rules.set(rule.id, rule)
    this.#version = rulesVersion
    this.#line = line
    this.#set = new RuleSet(rules)
  }

  /** Applies the current rules, and every later set; a change waits for this. */
  onChange(apply: (rules: RuleSet) => Promise<void> | void): void {
    this.#listeners.push(apply)
    void apply(this.#set)
  }

  get(id: string): Rule | undefined {
    return this.#rules.get(id)
  }

  /** All rules, including those that are off; the first has precedence. */
  list(): { readonly rules: readonly Rule[]; readonly version: number } {
    const rules = [...this.#rules.values()].sort((a, b) => b.priority - a.priority || (a.id < b.id ? -1 : 1))
    return { rules, version: this.#version }
  }

  /** The newest changes of rules and switch that this hub has applied. */
  get line(): readonly string[] {
    return this.#line
  }

  /** Whether a change of this name was made, as far as this hub has heard; of the newest hundred. */
  hasMade(name: string): boolean {
    return hasMade(this.#line, name)
  }

  /** Adds or replaces a rule; it is stored and in force when this resolves. */
  async put(rule: Rule, change: StoreChange): Promise<void> {
    await this.#store.saveRule(rule, this.continued(change))
    await this.load()
  }

  async delete(id: string, change: StoreChange): Promise<void> {
    await this.#store.deleteRule(id, this.continued(change))
    await this.load()
  }

  /** A change that is made only if the store has everything that this hub has applied. */
  continued(change: StoreChange): StoreChange {
    return { ...change, after: headOf(this.#line) }
  }

  /**
   * Applies the store's rules, including other hubs' changes; does nothing if the store was rolled back meanwhile (see
   * `SharedHub`). Returns the store's state.
   */
  async load(): Promise<HubState> {
    const state = await this.#store.load()
    const relation = compareLines(this.#line, state.line)
    if (relation === 'same' || relation === 'ahead') await this.take(state)
    return state
  }

  /** Applies the rules of a store's state. */
  async take({ rules, rulesVersion, line }: HubState): Promise<void> {
    this.#rules.clear()
    for (const rule of rules) this.#rules.set(rule.id, rule)
    this.#version = rulesVersion
    this.#line = line
    await this.#compile()
  }

  async #compile(): Promise<void> {
    this.#set = new RuleSet(this.#rules.values())
    await Promise.all(this.#listeners.map((apply) => apply(this.#set)))
  }
}
