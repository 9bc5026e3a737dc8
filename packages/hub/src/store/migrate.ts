import type { DatabaseSync } from 'node:sqlite'
import { StoreError } from '../errors.ts'

/**
 * Brings a database to the newest version of its tables, which SQLite keeps as `user_version`: step `n` leads from
 * version `n` to `n + 1` and is applied atomically with its number. A store that a newer Firebreak has changed is
 * refused: this one would not know what it must preserve.
 */
export function migrate(database: DatabaseSync, steps: readonly string[]): void {
  const { user_version: stored } = database.prepare('PRAGMA user_version').get() as { user_version: number }
  if (stored > steps.length) {
    throw new StoreError(
      `it was written by a newer Firebreak (version ${stored} of its tables; this one knows ${steps.length}); ` +
        'run that version, or restore a backup from before the upgrade into an empty folder',
    )
  }
  for (const [version, step] of steps.entries()) {
    if (version < stored) continue
    database.exec('BEGIN IMMEDIATE')
    try {
      database.exec(step)
      database.exec(`PRAGMA user_version = ${version + 1}`)
      database.exec('COMMIT')
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK')
      throw error
    }
  }
}
