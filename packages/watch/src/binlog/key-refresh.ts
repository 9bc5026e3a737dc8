import { fillTemplate, type KeyMapping, makeValue, type Row, type RowMapping } from './row-mapping.ts'

/** What should become of one key after a row has changed. */
export type KeyRefresh =
  | { readonly kind: 'set'; readonly key: string; readonly value: string; readonly ttlSeconds: number | undefined }
  | {
      readonly kind: 'load'
      readonly key: string
      readonly loader: string
      readonly row: Row
      readonly ttlSeconds: number | undefined
    }
  /** The row is gone: a cold key is deleted, a hot one is replaced by its tombstone. */
  | { readonly kind: 'gone'; readonly key: string; readonly tombstone: string; readonly ttlSeconds: number | undefined }

/** A change of one row: before, after, or both. */
export interface RowChange {
  readonly table: string
  readonly before: Row | undefined
  readonly after: Row | undefined
}

/** The keys that a row change refreshes. If the row's columns now give another key, the old key is gone. */
export function refreshesOf(mapping: RowMapping, change: RowChange): KeyRefresh[] {
  return (mapping.get(change.table) ?? []).flatMap((key) => refreshOf(key, change))
}

function refreshOf(mapping: KeyMapping, { before, after }: RowChange): KeyRefresh[] {
  const { tombstone, ttlSeconds } = mapping
  const oldKey = before === undefined ? undefined : fillTemplate(mapping.key, before)
  const newKey = after === undefined ? undefined : fillTemplate(mapping.key, after)
  const refreshes: KeyRefresh[] = []
  if (oldKey !== undefined && oldKey !== newKey) refreshes.push({ kind: 'gone', key: oldKey, tombstone, ttlSeconds })
  if (newKey !== undefined) {
    const value = makeValue(mapping.value, after!)
    if (value !== undefined) refreshes.push({ kind: 'set', key: newKey, value, ttlSeconds })
    else if (mapping.value.kind === 'loader') {
      refreshes.push({ kind: 'load', key: newKey, loader: mapping.value.loader, row: after!, ttlSeconds })
    }
  }
  return refreshes
}
