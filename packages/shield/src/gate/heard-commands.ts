import type { CommandRow } from '@firebreak/core/commands'
import type { HotKey } from '../cache/hot-key.ts'

/** Counts the commands on one hot key, for a user who asks at the hub. Meanwhile the gate sees each of them. */
export class HeardCommands {
  readonly #counts = new Map<CommandRow, number>()
  readonly #keys: readonly HotKey[]

  /** Counts on these keys, which have one name, until `stop`. */
  constructor(keys: Iterable<HotKey>) {
    this.#keys = [...keys]
    for (const key of this.#keys) key.heard = this
  }

  add(row: CommandRow): void {
    this.#counts.set(row, (this.#counts.get(row) ?? 0) + 1)
  }

  /** Ends counting; gives the commands, the most frequent first. */
  stop(): { readonly name: string; readonly count: number }[] {
    for (const key of this.#keys) if (key.heard === this) key.heard = undefined
    return [...this.#counts].map(([{ name }, count]) => ({ name, count })).toSorted((a, b) => b.count - a.count)
  }
}
