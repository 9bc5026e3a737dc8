import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { parseRule } from '@firebreak/core/rules'
import { temporaryFolder } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { migrate } from './migrate.ts'
import { SqliteStore } from './sqlite-store.ts'

const versionOf = (database: DatabaseSync) => Object.values(database.prepare('PRAGMA user_version').get()!)[0]

test('each step is made once, in order, and only those that a store lacks', () => {
  const database = new DatabaseSync(':memory:')
  const first = 'CREATE TABLE things (name TEXT)'
  migrate(database, [first])
  database.exec("INSERT INTO things VALUES ('old')")
  const second = "ALTER TABLE things ADD COLUMN size INTEGER; UPDATE things SET size = 1 WHERE name = 'old'"
  migrate(database, [first, second])
  migrate(database, [first, second])
  expect(database.prepare('SELECT * FROM things').all()).toMatchObject([{ name: 'old', size: 1 }])
  expect(versionOf(database)).toBe(2)
})

test('a step that fails leaves the store as it was', () => {
  const database = new DatabaseSync(':memory:')
  const first = 'CREATE TABLE things (name TEXT)'
  migrate(database, [first])
  expect(() => migrate(database, [first, 'DROP TABLE things; SELECT * FROM nowhere'])).toThrow('nowhere')
  expect(database.prepare('SELECT * FROM things').all()).toEqual([])
  expect(versionOf(database)).toBe(1)
})

test('a store of before there were versions is taken over; one of a newer Firebreak is refused and left alone', async () => {
  const file = join(temporaryFolder('migrate'), 'hub.sqlite')
  const database = new DatabaseSync(file)
  database.exec(readFileSync(new URL('./schema.sql', import.meta.url), 'utf8'))
  const rule = JSON.stringify(parseRule({ id: 'r', prefix: 'k', threshold: 5 }))
  database.prepare('INSERT INTO rules (id, rule) VALUES (?, ?)').run('r', rule)
  const again = new SqliteStore(file)
  expect((await again.load()).rules.map(({ id }) => id)).toEqual(['r'])
  expect(versionOf(database)).toBe(2)
  await again.close()
  database.exec('PRAGMA user_version = 99')
  expect(() => new SqliteStore(file)).toThrow(
    /hub\.sqlite cannot be opened: .*newer Firebreak \(version 99.*restore a backup/,
  )
  expect(versionOf(database)).toBe(99)
  database.close()
})
