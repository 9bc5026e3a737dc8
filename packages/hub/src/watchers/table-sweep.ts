import type { Redis } from '@firebreak/redis'
import type { RowMapping } from '@firebreak/watch'

/** The pattern of names that a key's template may have made: columns become `*`, the rest is literal. */
export function globOf(template: string): string {
  return template.replaceAll(/[*?[\]\\]/g, '\\$&').replaceAll(/\{[^{}]+\}/g, '*')
}

/** Calls back with every key in Redis that rows of these tables may have made, a page at a time. */
export async function forEachKeyOf(
  redis: Redis,
  mapping: RowMapping,
  tables: readonly string[],
  onKeys: (keys: readonly string[], tombstones: ReadonlyMap<string, string>) => Promise<void>,
): Promise<void> {
  const recipes = tables.flatMap((table) => mapping.get(table) ?? [])
  for (const node of await redis.masters()) {
    for (const { key: template, tombstone } of recipes) {
      let cursor = '0'
      do {
        const page = await node.send(['SCAN', cursor, 'MATCH', globOf(template), 'COUNT', 1000])
        const [next, keys] = page as [string, string[]]
        cursor = String(next)
        if (keys.length > 0) await onKeys(keys, new Map(keys.map((key) => [key, tombstone])))
      } while (cursor !== '0')
    }
  }
}
