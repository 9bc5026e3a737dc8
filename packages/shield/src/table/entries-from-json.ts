import { entryFromJson, type TableEntry } from '@firebreak/core'

/** The entries of a frame; those that this version does not know are passed over. */
export function entriesFromJson(entries: readonly TableEntry[]): TableEntry[] {
  return entries.map(entryFromJson).filter((entry) => entry !== undefined)
}
