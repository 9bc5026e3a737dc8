import { type Rule, RuleSet } from '@firebreak/core'
import type { HubState, HubStore } from '../store/hub-store.ts'

/** The rules in force: what the store has, compiled, with the version that every change raises. */
export class RuleBook {
  readonly #store: HubStore
  readonly #rules = new Map<string, Rule>()
  readonly #listeners: ((rules: RuleSet) => Promise<void> | void)[] = []
  #version: number
  #set: RuleSet

  constructor(store: HubStore, { rules, rulesVersion }: HubState) {
    this.#store = store
    for (const rule of rules) this.#rules.set(rule.id, rule)
    this.#version = rulesVersion
    this.#set = new RuleSet(rules)
  }

  /** Puts the rules in force now, and every set after them; a change waits for it. */
  onChange(apply: (rules: RuleSet) => Promise<void> | void): void {
    this.#listeners.push(apply)
    void apply(this.#set)
  }

  get(id: string): Rule | undefined {
    return this.#rules.get(id)
  }

  /** All of them, those that are off too; the first is the one that wins. */
  list(): { readonly rules: readonly Rule[]; readonly version: number } {
    const rules = [...this.#rules.values()].sort((a, b) => b.priority - a.priority || (a.id < b.id ? -1 : 1))
    return { rules, version: this.#version }
  }

  /** Adds or replaces a rule; it is stored and in force when this resolves. */
  async put(rule: Rule): Promise<void> {
    await this.#changed(await this.#store.saveRule(rule), () => this.#rules.set(rule.id, rule))
  }

  async delete(id: string): Promise<void> {
    await this.#changed(await this.#store.deleteRule(id), () => this.#rules.delete(id))
  }

  /** Takes the rules that the store has. */
  async load(): Promise<void> {
    const { rules, rulesVersion } = await this.#store.load()
    this.#rules.clear()
    for (const rule of rules) this.#rules.set(rule.id, rule)
    this.#version = rulesVersion
    await this.#compile()
  }

  async #changed(version: number, change: () => void): Promise<void> {
    // Other hubs may have changed rules too: then ours alone does not make the version.
    if (this.#store.board !== undefined && version !== this.#version + 1) {
      await this.load()
      return
    }
    this.#version = version
    change()
    await this.#compile()
  }

  async #compile(): Promise<void> {
    this.#set = new RuleSet(this.#rules.values())
    await Promise.all(this.#listeners.map((apply) => apply(this.#set)))
  }
}
