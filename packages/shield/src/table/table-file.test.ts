import { mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { defaultLocalCache, keyName, systemRuntime, type TableSnapshot } from '@firebreak/core'
import { temporaryFolder, waitFor } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { Trouble, type Warning } from '../trouble/trouble.ts'
import { KeptEntries } from './kept-entries.ts'
import { TableFile } from './table-file.ts'

function snapshot(version: number, count = 1): TableSnapshot {
  const entries = Array.from({ length: count }, (_, index) => ({
    redisClusterId: 'main',
    key: keyName(Buffer.from([index >> 8, index & 0xff, 0x62, 0xff, 0x2c, 0x20, 0x25])),
    strategy: defaultLocalCache,
    ruleId: 'r',
    reason: '',
    since: 1,
    until: 2,
  }))
  return { epoch: 'e', version, entries, rules: [], isOff: false }
}

/** A file whose table and time are set by the test. */
function setUp(path = join(temporaryFolder('table'), 'deep', 'table.json')) {
  const warnings: Warning[] = []
  const table = { snapshot: snapshot(1), hubOffsetMs: 5 }
  const time = { now: 1000, writeMs: 0 }
  const waits: number[] = []
  const timers = {
    ...systemRuntime.timers,
    setTimeout: (callback: () => void, delayMs: number) => {
      waits.push(delayMs)
      return systemRuntime.timers.setTimeout(callback, 0)
    },
  }
  const trouble = new Trouble((warning) => warnings.push(warning))
  const means = { trouble, clock: { now: () => time.now }, wallClock: systemRuntime.wallClock, timers }
  const source = () => {
    time.now += time.writeMs
    return { ...table }
  }
  const file = new TableFile(path, source, means)
  return { file, path, table, time, waits, warnings, read: () => file.read(new KeptEntries()) }
}

test('a written table is read again, keys of any bytes included, and nothing else is left in the folder', async () => {
  const { file, path, table, read } = setUp()
  expect(read()).toBeUndefined()
  for (let version = 1; version <= 20; version++) {
    table.snapshot = snapshot(version, 600)
    file.changed()
  }
  await waitFor(() => read()?.snapshot.version === 20)
  expect(read()).toEqual({ snapshot: snapshot(20, 600), hubOffsetMs: 5 })
  table.hubOffsetMs = 6
  file.changed()
  file.close()
  expect(read()?.hubOffsetMs).toBe(6)
  await waitFor(() => readdirSync(dirname(path)).length === 1)
})

test('changes are written once a second, and less often if the table takes long to write', async () => {
  const { file, table, time, waits, read } = setUp()
  file.changed()
  await waitFor(() => read()?.snapshot.version === 1)
  table.snapshot = snapshot(2)
  time.writeMs = 100
  file.changed()
  await waitFor(() => read()?.snapshot.version === 2)
  table.snapshot = snapshot(3)
  file.changed()
  await waitFor(() => read()?.snapshot.version === 3)
  expect(waits).toEqual([0, 1000, 5000])
})

test('a table that is already written is not written again at the end', async () => {
  const { file, table, read } = setUp()
  file.changed()
  await waitFor(() => read()?.snapshot.version === 1)
  await new Promise((resolve) => setImmediate(resolve))
  table.snapshot = snapshot(2)
  file.close()
  expect(read()?.snapshot.version).toBe(1)
})

test('half-written files of a dead process are removed, those that another process is writing are not', async () => {
  const { file, path, read } = setUp()
  mkdirSync(dirname(path))
  for (const name of ['table.json.1.new', 'table.json.2.new', 'other.json.1.new']) {
    writeFileSync(join(dirname(path), name), '{')
  }
  const longAgo = Date.now() / 1000 - 3600
  utimesSync(`${path}.1.new`, longAgo, longAgo)
  file.changed()
  await waitFor(() => read() !== undefined)
  expect(readdirSync(dirname(path)).sort()).toEqual(['other.json.1.new', 'table.json', 'table.json.2.new'])
})

test('a broken file is ignored and reported', () => {
  const { path, warnings, read } = setUp(join(temporaryFolder('table'), 'table.json'))
  for (const text of ['', '{', '{"snapshot":{}}', '[]']) {
    writeFileSync(path, text)
    expect(read()).toBeUndefined()
  }
  expect(warnings.map(({ kind }) => kind)).toEqual(['table-file'])
})

test('a folder that cannot be written to is reported once and does no harm', async () => {
  const blocked = join(temporaryFolder('table'), 'file')
  writeFileSync(blocked, 'not a folder')
  const { file, warnings, waits } = setUp(join(blocked, 'table.json'))
  file.changed()
  await waitFor(() => warnings.length === 1)
  await waitFor(() => {
    file.changed()
    return waits.length > 1
  })
  file.close()
  expect(warnings).toHaveLength(1)
  expect(warnings[0]!.message).toMatch(/cannot save the last good table to .*(ENOTDIR|EEXIST).*/)
})

test('shields of one process that share the file do not take it from each other', async () => {
  const first = setUp()
  const others = Array.from({ length: 4 }, () => setUp(first.path))
  const all = [first, ...others]
  for (let round = 1; round <= 10; round++) {
    for (const { table, file } of all) {
      table.snapshot = snapshot(round, 600)
      file.changed()
    }
    await waitFor(() => first.read()?.snapshot.version === round)
  }
  await waitFor(() => readdirSync(dirname(first.path)).length === 1)
  expect(all.flatMap(({ warnings }) => warnings)).toEqual([])
})
