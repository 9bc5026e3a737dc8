import { IdsError, messageOf } from '../errors.ts'

/**
 * Holds a lock on a file until the returned function is called or the process ends, however it ends.
 *
 * Node has no `flock`; SQLite, which Node includes since 22.13, uses the system's file locks: an open exclusive
 * transaction on an empty database is one. A file with a process id would outlive a crash, and process ids are reused.
 */
export function holdFileLock(path: string): () => void {
  const sqlite = process.getBuiltinModule?.('node:sqlite')
  if (sqlite === undefined) {
    throw new IdsError(
      'FB_IDS_DRIVER_MISSING',
      'a cache file needs node:sqlite for its lock: use Node 22.13 or newer',
      {
        driver: 'node:sqlite',
      },
    )
  }
  try {
    const database = new sqlite.DatabaseSync(path)
    try {
      database.exec('BEGIN EXCLUSIVE')
    } catch (error) {
      database.close()
      throw error
    }
    return () => database.close()
  } catch (cause) {
    throw new IdsError(
      'FB_IDS_CACHE_LOCKED',
      `the lock ${path} cannot be taken (${messageOf(cause)}); another node uses this cache file: give each node its own`,
      { path },
      { cause },
    )
  }
}
