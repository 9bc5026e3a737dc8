import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '@firebreak/testkit'
import { beforeAll, expect, test } from 'vitest'
import { countsOf, differences, type Expected, explain } from './compare-runs.ts'
import { expectedDifferences } from './expected-differences.ts'
import { suites } from './known-suites.ts'
import { readHiredis, readJunit, readTcl } from './read-results.ts'
import { runSuite, type SuiteRun } from './run-suite.ts'
import type { Way } from './suite.ts'

const root = join(import.meta.dirname, '../..')

/** A library of one file, with tests of its own: what it does, what it keeps to itself, and what is broken anyway. */
function sampleLibrary(): string {
  const folder = temporaryFolder('sample')
  mkdirSync(join(folder, 'lib'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), '{ "name": "sample" }')
  writeFileSync(join(folder, 'lib/index.cjs'), `exports.Redis = require('ioredis').Redis`)
  writeFileSync(
    join(folder, 'sample.test.cjs'),
    `const test = require('node:test')
const assert = require('node:assert')
const { Redis } = require('./lib/index.cjs')

const open = (run) => async () => {
  const redis = new Redis(Number(process.env.REDIS_PORT))
  try {
    await run(redis)
  } finally {
    redis.disconnect()
  }
}

test('reads what it wrote', open(async (redis) => {
  for (let turn = 0; turn < 50; turn++) {
    await redis.set('k', String(turn))
    for (let again = 0; again < 5; again++) assert.strictEqual(await redis.get('k'), String(turn))
  }
}))
test('keeps sendCommand on its class', open(async (redis) => {
  assert.strictEqual(Object.hasOwn(redis, 'sendCommand'), false)
}))
test('counts its own connections', open(async (redis) => {
  await redis.get('k')
  const others = (await redis.client('LIST')).split('\\n').filter((line) => !line.includes('cmd=client'))
  assert.strictEqual(others.length, 1)
}))
test('never worked', () => assert.fail('by itself'))
`,
  )
  return folder
}

const runs = new Map<Way, SuiteRun>()
beforeAll(async () => {
  const suite = suites['node']!
  const folder = sampleLibrary()
  const reports = temporaryFolder('reports')
  for (const way of suite.ways) runs.set(way, await runSuite(suite, way, { folder, reports, maxMs: 60_000 }))
})

const outcomes = (way: Way) =>
  Object.fromEntries([...runs.get(way)!.results].map(([name, { outcome }]) => [name, outcome]))

test('a suite runs plain and through the proxy with the same outcomes', () => {
  const expected = {
    'reads what it wrote': 'passed',
    'keeps sendCommand on its class': 'passed',
    'counts its own connections': 'passed',
    'never worked': 'failed',
  }
  expect(outcomes('plain')).toEqual(expected)
  expect(countsOf(runs.get('plain')!.results)).toEqual({ passed: 3, failed: 1, skipped: 0 })
  expect(outcomes('proxy')['reads what it wrote']).toBe('passed')
  expect(outcomes('proxy')['keeps sendCommand on its class']).toBe('passed')
})

test.each(['cache', 'copies', 'limits'] as const)('with %s every client is protected and every key hot', (way) => {
  const { facts } = runs.get(way)!
  expect(facts).toMatchObject({ clients: 3, refused: 0 })
  expect(facts!.keys).toBeGreaterThan(0)
  expect(outcomes(way)).toMatchObject({
    'reads what it wrote': 'passed',
    'keeps sendCommand on its class': 'failed',
    'never worked': 'failed',
  })
})

test('under the cache the suite was answered from memory', () => {
  expect(runs.get('cache')!.facts!.localHits).toBeGreaterThan(50)
})

test('only what ends otherwise than plain differs, and the list explains what it names', () => {
  const found = differences('cache', runs.get('plain')!.results, runs.get('cache')!.results)
  expect(found.map(({ test: name }) => name)).toContain('keeps sendCommand on its class')
  expect(found.map(({ test: name }) => name)).not.toContain('never worked')
  const list: Expected[] = [{ suite: 'node', ways: ['cache'], tests: /sendCommand on its class/, reason: 'ours' }]
  const explained = explain('node', found, list)
  expect(explained.find(({ difference }) => difference.test.includes('sendCommand'))!.expected?.reason).toBe('ours')
  expect(explain('node', found, []).every(({ expected }) => expected === undefined)).toBe(true)
  expect(explain('another', found, list).every(({ expected }) => expected === undefined)).toBe(true)
})

test('a run that never came to a test differs from one that did', () => {
  const plain = new Map([['a', { outcome: 'passed' } as const]])
  expect(differences('proxy', plain, new Map())).toMatchObject([{ test: 'a', plain: 'passed', here: 'not run' }])
})

test('what suites of other kinds print is read', () => {
  expect([...readHiredis('#01 Can parse: \x1b[0;32mPASSED\x1b[0;0m\n#02 Sends: \x1b[0;31mFAILED\x1b[0;0m\n')]).toEqual([
    ['Can parse', { outcome: 'passed' }],
    ['Sends', { outcome: 'failed' }],
  ])
  expect([
    ...readTcl('[ok]: SET and GET (2 ms)\n[err]: INCR in tests/unit/type/incr.tcl\n[ok]: SET and GET (1 ms)\n'),
  ]).toEqual([
    ['SET and GET', { outcome: 'passed' }],
    ['INCR', { outcome: 'failed', message: 'INCR in tests/unit/type/incr.tcl' }],
    ['SET and GET (2)', { outcome: 'passed' }],
  ])
  const xml = `<testsuite><testcase classname="a.b" name="one" time="1"/><testcase classname="a.b" name="two"><failure message="no">x</failure></testcase></testsuite>`
  expect([...readJunit(xml)].map(([name, { outcome }]) => [name, outcome])).toEqual([
    ['a.b one', 'passed'],
    ['a.b two', 'failed'],
  ])
})

test('each test of vitest is a line as soon as it ends', async () => {
  const folder = temporaryFolder('vitest')
  const results = join(folder, 'results')
  writeFileSync(join(folder, 'job.test.mjs'), "describe('a job', () => { test('adds', () => {}); test.skip('waits') })")
  const { command, read } = suites['bullmq']!
  const { args, env } = command({ folder, port: 0, results, way: 'plain' })
  const vitest = join(root, 'node_modules/.bin/vitest')
  const child = spawn(vitest, [...args, '--globals'], { cwd: folder, env: { ...process.env, ...env } })
  await once(child, 'exit')
  expect([...read(readFileSync(results, 'utf8'), '')].map(([name, { outcome }]) => [name, outcome])).toEqual([
    ['job: a job adds', 'passed'],
    ['job: a job waits', 'skipped'],
  ])
})

test('every expected difference names a suite and a way that it runs in, and says why', () => {
  for (const { suite, ways, reason } of expectedDifferences) {
    expect(suites[suite]?.ways).toEqual(expect.arrayContaining([...ways]))
    expect(reason.length).toBeGreaterThan(20)
  }
})
