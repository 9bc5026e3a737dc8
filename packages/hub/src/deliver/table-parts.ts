import type { TableEntry, TableSnapshot } from '@firebreak/core'

/**
 * About how large a frame of the table may be. A table of 100,000 keys has tens of megabytes, and one of long names more
 * than a sensor takes in one message.
 */
export const maxPartBytes: number = 1 << 20

/** What an entry has in JSON beside its names and its reason. */
const entryBytes = 320

/** About how many bytes an entry has in a frame. */
export function bytesOf({ redisClusterId, key, ruleId, reason, strategy }: TableEntry): number {
  const names = strategy.strategy === 'RedundantKeys' ? [...strategy.copies, ...(strategy.placed ?? [])] : []
  const text = names.reduce((sum, name) => sum + name.length, redisClusterId.length + key.length)
  // A byte outside of printable ASCII is written as three.
  return entryBytes + ruleId.length + reason.length + text * 3
}

/** A snapshot as parts of bounded size, to be put together again by whoever gets them. */
export function* snapshotParts(snapshot: TableSnapshot): Generator<TableSnapshot> {
  let entries: TableEntry[] = []
  let bytes = 0
  for (const entry of snapshot.entries) {
    const more = bytesOf(entry)
    if (bytes + more > maxPartBytes && entries.length > 0) {
      yield { ...snapshot, entries, hasMore: true }
      entries = []
      bytes = 0
    }
    entries.push(entry)
    bytes += more
  }
  yield { ...snapshot, entries }
}
