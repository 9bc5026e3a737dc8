import { entryFromJson, isKnownEntry, type TableDelta, type TableEntry, type TableSnapshot } from '@firebreak/core'
import { knownRules, type Rule } from '@firebreak/core/rules'
import type { Trouble } from '../trouble/trouble.ts'
import type { KeptEntries } from './kept-entries.ts'
import { allAtOnce, entriesPerStep, type Steps } from './turn-queue.ts'

/** A snapshot from a hub or a file, without entries that this version does not know. */
export function readSnapshot(snapshot: TableSnapshot, trouble: Trouble, pool: KeptEntries): TableSnapshot {
  return allAtOnce(snapshotSteps(snapshot, trouble, pool))
}

/** `readSnapshot` in steps. */
export function* snapshotSteps(snapshot: TableSnapshot, trouble: Trouble, pool: KeptEntries): Steps<TableSnapshot> {
  const { entries } = yield* sortEntries(snapshot.entries, trouble, pool)
  return { ...snapshot, entries, rules: readRules(snapshot.rules, trouble), isOff: snapshot.isOff === true }
}

/**
 * Like `snapshotSteps`, for a delta. If a key's new entry is unknown, the key has none any more: the old one no longer
 * applies.
 */
export function* deltaSteps(delta: TableDelta, trouble: Trouble, pool: KeptEntries): Steps<TableDelta> {
  const { entries, unknown } = yield* sortEntries(delta.set, trouble, pool)
  const removed = [...listOf(delta.removed), ...unknown].flatMap((entry) => entryFromJson(entry as TableEntry) ?? [])
  const rules = delta.rules === undefined ? undefined : readRules(delta.rules, trouble)
  return { ...delta, set: entries, removed, ...(rules !== undefined && { rules }) }
}

function* sortEntries(
  given: unknown,
  trouble: Trouble,
  pool: KeptEntries,
): Steps<{ entries: TableEntry[]; unknown: TableEntry[] }> {
  const entries: TableEntry[] = []
  const unknown: TableEntry[] = []
  for (const [index, entry] of listOf(given).entries()) {
    if (index > 0 && index % entriesPerStep === 0) yield
    if (!isKnownEntry(entry)) {
      if (typeof (entry as TableEntry | null)?.key === 'string') unknown.push(entry as TableEntry)
      continue
    }
    const read = entryFromJson(pool.compact(entry))
    if (read !== undefined) entries.push(read)
  }
  const first = unknown[0]
  if (first !== undefined) {
    const name = String(first.strategy?.strategy)
    tellNewer(trouble, `entries, the first with the strategy ${name} of rule ${first.ruleId}`)
  }
  return { entries, unknown }
}

function readRules(given: unknown, trouble: Trouble): readonly Rule[] {
  const { rules, unknownIds } = knownRules(listOf(given))
  if (unknownIds.length > 0) tellNewer(trouble, `rules: ${unknownIds.slice(0, 5).join(', ')}`)
  return rules
}

function tellNewer(trouble: Trouble, what: string): void {
  trouble.note(
    'table-newer',
    `the hub's table has ${what}, which this version of Firebreak does not support; their keys go to Redis as usual. Upgrade this process`,
  )
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
