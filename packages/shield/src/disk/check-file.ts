// Reads every record of a file in a separate process: LMDB trusts its files, and a damaged one kills the process that
// reads it. Exits with 0 if the file can be used.
import { decodeRecord } from './disk-record.ts'
import { loadLmdb } from './lmdb-store.ts'

const [path] = process.argv.slice(2)
const database = loadLmdb()<Buffer, string>({ path: path!, noSubdir: true, encoding: 'binary' })
for (const { value } of database.getRange()) if (decodeRecord(value) === undefined) process.exit(1)
// Writing walks the list of free pages, which reading does not.
await database.put('firebreak-check', Buffer.alloc(0))
await database.remove('firebreak-check')
await database.close()
