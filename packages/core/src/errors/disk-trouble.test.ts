import { expect, test } from 'vitest'
import { explainDiskTrouble } from './disk-trouble.ts'

const failure = (message: string, data: object) => Object.assign(new Error(message), data)

test.each([
  [failure('ENOSPC: no space left on device, write', { code: 'ENOSPC' }), /write; the disk is full: free some room/],
  [failure('No space left on device: mdb_txn_commit', {}), /the disk is full/],
  [failure('database or disk is full', { code: 'ERR_SQLITE_ERROR', errcode: 13 }), /the disk is full/],
  [failure('database is locked', { code: 'ERR_SQLITE_ERROR', errcode: 5 }), /another process has locked the file/],
  [failure('attempt to write a readonly database', { errcode: 8 + 256 * 4 }), /permission denied: give this user/],
  [failure("ENOENT: no such file or directory, open '/x/y'", { code: 'ENOENT' }), /the folder is missing: create it/],
])('%s is reported with what to do', (error, expected) => {
  expect(explainDiskTrouble(error)).toMatch(expected)
})

test('anything else is reported as it is', () => {
  expect(explainDiskTrouble(new Error('odd'))).toBe('odd')
  expect(explainDiskTrouble('text')).toBe('text')
})
