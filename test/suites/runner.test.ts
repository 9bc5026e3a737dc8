import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startSource, temporaryFolder } from '@firebreak/testkit'
import { beforeAll, expect, test } from 'vitest'
import { compareRuns, countsOf, type Expected, exitCodeOf, explain } from './compare-runs.ts'
import { expectedDifferences } from './expected-differences.ts'
import { suites } from './known-suites.ts'
import { cellOf } from './print-runs.ts'
import { readHiredis, readJunit, readTcl } from './read-results.ts'
import { runSuite, type SuiteRun } from './run-suite.ts'
import type { TestEnd, Way } from './suite.ts'

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

test('a suite has the same results plain and through the proxy', () => {
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

const runOf = (results: SuiteRun['results'], part: Partial<SuiteRun> = {}): SuiteRun => ({
  way: 'cache',
  results,
  facts: undefined,
  seconds: 1,
  end: 'complete',
  ...part,
})
const passed: TestEnd = { outcome: 'passed' }
const failed: TestEnd = { outcome: 'failed' }

test('only tests that end differently from the plain run differ, and the list explains those it names', () => {
  const found = compareRuns(runs.get('plain')!, runs.get('cache')!)
  expect(found.differences.map(({ test: name }) => name)).toContain('keeps sendCommand on its class')
  expect(found.differences.map(({ test: name }) => name)).not.toContain('never worked')
  const entry = { suite: 'node', tests: /^keeps sendCommand on its class/, atMost: 1, reason: 'ours' } as const
  const list: Expected[] = [{ ...entry, ways: ['cache'] }]
  const explained = explain('node', found, list)
  expect(explained.find(({ difference }) => difference.test.includes('sendCommand'))!.expected?.reason).toBe('ours')
  expect(explain('node', found, []).every(({ expected }) => expected === undefined)).toBe(true)
  expect(explain('another', found, list).every(({ expected }) => expected === undefined)).toBe(true)
})

test('every run completes, and the proxy reports what it did', () => {
  expect([...runs.values()].map(({ end }) => end)).toEqual([...runs.values()].map(() => 'complete'))
  expect(runs.get('plain')!.facts).toBeUndefined()
  const facts = runs.get('proxy')!.facts!
  expect(facts.clients).toBeGreaterThanOrEqual(2)
  expect(facts.keys).toBeGreaterThan(0)
  expect(facts.localHits).toBeGreaterThan(50)
})

test('a test that one run did not reach is neither equal nor a difference', () => {
  const both = new Map([
    ['a', passed],
    ['b', passed],
  ])
  const plain = runOf(both, { way: 'plain' })
  const short = runOf(new Map([['a', passed]]), { end: 'out of time' })
  const found = compareRuns(plain, short)
  expect(found).toEqual({ way: 'cache', differences: [], notRun: [{ test: 'b', way: 'cache', missingIn: 'here' }] })
  expect(exitCodeOf([plain, short], [found], [])).toBe(3)
  expect(cellOf(short, found, [])).toBe('1 of 1\\*, 0 differ, 1 not run')
  const reverse = compareRuns(short, runOf(both))
  expect(reverse.notRun).toEqual([{ test: 'b', way: 'cache', missingIn: 'plain' }])
  expect(exitCodeOf([plain, runOf(both)], [compareRuns(plain, runOf(both))], [])).toBe(0)
})

test('a failure between tests is a difference if the plain run completed without it', () => {
  const hook = new Map([
    ['a', passed],
    ['"before each" hook for "b"', failed],
  ])
  const plain = runOf(new Map([['a', passed]]), { way: 'plain' })
  expect(compareRuns(plain, runOf(hook)).differences).toMatchObject([{ plain: 'no such failure', here: 'failed' }])
  expect(compareRuns({ ...plain, end: 'out of time' }, runOf(hook))).toMatchObject({
    differences: [],
    notRun: [{ missingIn: 'plain' }],
  })
})

test('an entry that matches more tests than allowed explains none of them, and the exit code says so', () => {
  const names = ['get a', 'get b', 'get c']
  const plain = runOf(new Map(names.map((name) => [name, passed])), { way: 'plain' })
  const here = runOf(new Map(names.map((name) => [name, failed])))
  const found = compareRuns(plain, here)
  const entry = (atMost: number): Expected => ({
    suite: 'node',
    ways: ['cache'],
    tests: /^get /,
    atMost,
    reason: 'ours',
  })
  const wide = explain('node', found, [entry(2)])
  expect(wide.map(({ expected }) => expected)).toEqual([undefined, undefined, undefined])
  expect(exitCodeOf([plain, here], [found], wide)).toBe(1)
  expect(exitCodeOf([plain, here], [found], explain('node', found, [entry(3)]))).toBe(0)
})

test('a run without any test is not a success', () => {
  expect(exitCodeOf([runOf(new Map(), { way: 'plain' })], [], [])).toBe(1)
})

test.each([
  [['node', '.', '--ways', 'cash'], 'has no way "cash"'],
  [['node', '.', '--max-minutes', 'soon'], '--max-minutes takes a number of minutes'],
  [['nothing', '.'], 'usage:'],
])('the runner refuses %j', async (words, said) => {
  const child = startSource(join(import.meta.dirname, 'main.ts'), words)
  expect(await child.exited).toBe(2)
  expect(child.output()).toContain(said)
})

test('a run that takes too long is ended with all its processes, and counts as far as it got', async () => {
  const folder = sampleLibrary()
  writeFileSync(
    join(folder, 'sleeps.test.cjs'),
    `require('node:test')('sleeps', () => new Promise(() => setInterval(() => {}, 1000)))`,
  )
  const options = { folder, reports: temporaryFolder('reports'), maxMs: 5000 }
  const run = await runSuite(suites['node']!, 'plain', options)
  expect(run.end).toBe('out of time')
  expect(run.results.has('sleeps')).toBe(false)
})

test('the output of other kinds of suites is understood', () => {
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

test('each vitest test is reported in a line as soon as it ends', async () => {
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

test('every expected difference names a suite, its ways and few tests, and says why', () => {
  for (const { suite, ways, tests, atMost, reason } of expectedDifferences) {
    expect(tests.source).toMatch(/^\^/)
    for (const any of ['', 'get', 'get returns null', 'a test of anything', 'cluster get a'])
      expect(tests.test(any)).toBe(false)
    expect(atMost).toBeLessThanOrEqual(20)
    expect(suites[suite]?.ways).toEqual(expect.arrayContaining([...ways]))
    expect(reason.length).toBeGreaterThan(20)
  }
})
