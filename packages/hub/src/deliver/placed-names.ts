import {
  copyName,
  entryId,
  isPlacedName,
  maxCopies,
  type RedundantKeysStrategy,
  type TableEntry,
  untagged,
} from '@firebreak/core'

/** How long the process that writes the copies takes precedence over others. */
const refresherMs = 10_000

/**
 * The names of keys' copies in Redis, as reported by the processes that write them. On a cluster they follow from the
 * slot map, which a hub need not know.
 */
export class PlacedNames {
  readonly #names = new Map<string, { names: readonly string[]; refresherAt: number }>()

  /**
   * Takes a process' report; true if it changes anything. Names that cannot be copies of the key by its entry are
   * ignored.
   */
  tell(entry: TableEntry, told: readonly string[], isRefresher: boolean, now: number): boolean {
    const { redisClusterId, key, strategy } = entry
    if (strategy.strategy !== 'RedundantKeys') return false
    const id = entryId(redisClusterId, key)
    const known = this.#names.get(id)
    if (!isRefresher && known !== undefined && now - known.refresherAt < refresherMs) return false
    const possible = possibleNames(strategy, key)
    const names = told.filter((name) => isPlacedName(name, possible))
    const refresherAt = isRefresher ? now : (known?.refresherAt ?? Number.NEGATIVE_INFINITY)
    this.#names.set(id, { names, refresherAt })
    return known?.names.join('\n') !== names.join('\n')
  }

  /** An entry with the current names of its copies. */
  in(entry: TableEntry): TableEntry {
    const { strategy } = entry
    if (strategy.strategy !== 'RedundantKeys') return entry
    const known = this.#names.get(entryId(entry.redisClusterId, entry.key))
    if (known === undefined || known.names.length === 0) return entry
    const possible = possibleNames(strategy, entry.key)
    // The names belong to an earlier strategy.
    if (!known.names.every((name) => isPlacedName(name, possible))) return entry
    return { ...entry, strategy: { ...strategy, placed: known.names } }
  }

  forget(redisClusterId: string, key: string): void {
    this.#names.delete(entryId(redisClusterId, key))
  }
}

/** The possible names of copies, without the number appended. */
function possibleNames({ copies, copiesPerNode, template }: RedundantKeysStrategy, key: string): ReadonlySet<string> {
  if (copiesPerNode === undefined || template === undefined) return new Set(copies.map(untagged))
  return new Set(Array.from({ length: maxCopies }, (_, index) => untagged(copyName(template, key, index + 1))))
}
