import { readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { defaultLocalCache, keyName, type TableSnapshot } from '@firebreak/core'
import { temporaryFolder, waitFor } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { Trouble, type Warning } from '../trouble/trouble.ts'
import { TableFile } from './table-file.ts'

function snapshot(version: number): TableSnapshot {
  const entry = {
    redisClusterId: 'main',
    key: keyName(Buffer.from([0, 0x62, 0xff, 0x2c, 0x20, 0x25])),
    strategy: defaultLocalCache,
    ruleId: 'r',
    reason: 'hot',
    since: 1,
    until: 2,
  }
  return { epoch: 'e', version, entries: [entry], rules: [], isOff: false }
}

test('what was written is read, keys of any bytes included, and nothing else is left in the folder', async () => {
  const path = join(temporaryFolder('table'), 'deep', 'table.json')
  const file = new TableFile(path, new Trouble())
  expect(file.read()).toBeUndefined()
  for (let version = 1; version <= 20; version++) file.write({ snapshot: snapshot(version), hubOffsetMs: 5 })
  await waitFor(() => file.read()?.snapshot.version === 20)
  expect(file.read()).toEqual({ snapshot: snapshot(20), hubOffsetMs: 5 })
  file.writeNow({ snapshot: snapshot(21), hubOffsetMs: 6 })
  expect(file.read()?.hubOffsetMs).toBe(6)
  expect(readdirSync(dirname(path))).toEqual(['table.json'])
})

test('a broken file is ignored and told', () => {
  const path = join(temporaryFolder('table'), 'table.json')
  const warnings: Warning[] = []
  const file = new TableFile(path, new Trouble((warning) => warnings.push(warning)))
  for (const text of ['', '{', '{"snapshot":{}}', '[]']) {
    writeFileSync(path, text)
    expect(file.read()).toBeUndefined()
  }
  expect(warnings.map(({ kind }) => kind)).toEqual(['table-file'])
})

test('a folder that cannot be written to is told once and harms nothing', () => {
  const warnings: Warning[] = []
  const blocked = join(temporaryFolder('table'), 'file')
  writeFileSync(blocked, 'not a folder')
  const file = new TableFile(join(blocked, 'table.json'), new Trouble((warning) => warnings.push(warning)))
  file.writeNow({ snapshot: snapshot(1), hubOffsetMs: 0 })
  file.writeNow({ snapshot: snapshot(2), hubOffsetMs: 0 })
  expect(warnings).toHaveLength(1)
  expect(warnings[0]!.message).toMatch(/cannot be kept in .*(ENOTDIR|EEXIST).*/)
})
