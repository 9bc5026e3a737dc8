import type { Strategy } from '@firebreak/core'
import { allCommands, type CommandRow, keysOf, ListArgs } from '@firebreak/core/commands'
import { expect, test } from 'vitest'
import {
  type AdapterName,
  connectAdapter,
  handle,
  hotKey,
  isProxysOwn,
  openShield,
  settle,
  strategies,
} from './gate-adapters.ts'

/** The situation when a command arrives: how its key is handled, and what was sent before it. */
interface Facts {
  readonly strategy?: Strategy
  readonly before?: readonly (readonly string[])[]
  /** True if the command itself was sent once before, and its load has arrived. */
  readonly isAgain?: boolean
}

const read = ['GET', hotKey]

const facts: Record<string, Facts> = {
  'nothing is hot': {},
  'its key is cached, and memory has no reply': { strategy: strategies.cached },
  'its key is cached, and memory has the reply': { strategy: strategies.cached, isAgain: true },
  'its key is over a limit that refuses': { strategy: strategies.refusing, before: [read] },
  'its key is over a limit that lets wait': { strategy: strategies.waiting, before: [read] },
  'its key is over a limit that gives the last reply': { strategy: strategies.stale, isAgain: true },
  'a write of its key is on its way': { strategy: strategies.cached, before: [['SET', hotKey, 'v']] },
  'increments of its key are combined': { strategy: strategies.combined },
  'an increment of its key is on its way': { strategy: strategies.combined, before: [['INCR', hotKey]] },
  'a flush is on its way': { strategy: strategies.cached, before: [['FLUSHALL']] },
  'rights are being changed': { strategy: strategies.cached, before: [['ACL', 'SETUSER', 'u']] },
}

/** An earlier command pins the connection: the proxy sends all that follows over a connection of the client's own. */
const bindingFacts: Record<string, Facts> = {
  'in a transaction': { strategy: strategies.cached, before: [['MULTI']] },
  'under WATCH': { strategy: strategies.cached, before: [['WATCH', 'other']] },
  'behind ASKING': { strategy: strategies.cached, before: [['ASKING']] },
  'as another user': { strategy: strategies.cached, before: [['AUTH', 'bob', 'secret']] },
  'after RESET': { strategy: strategies.cached, before: [['RESET']] },
}

/** A command as somebody would type it, with the hot key at each key position. */
function wordsOf(row: CommandRow): string[] {
  const words = row.name.split(' ')
  const atLeast = Math.max(Math.abs(row.arity), 8)
  while (words.length < (row.arity < 0 ? atLeast : row.arity)) words.push(hotKey)
  for (const spec of row.keys) {
    if (spec.kind === 'counted') words[spec.countAt] = '1'
    if (spec.kind === 'keyword') words.splice(spec.from, 0, spec.words[0]!)
  }
  return words
}

const rows = allCommands().filter(({ flags }) => !flags.has('container'))

test('every row that has keys gets the hot one', () => {
  const without = rows.filter((row) => row.keys.length > 0 && keysOf(row, new ListArgs(wordsOf(row))).length === 0)
  expect(without.map(({ name }) => name)).toEqual([])
})

async function outcomes(name: AdapterName, { strategy, before = [], isAgain }: Facts) {
  const all: Record<string, string> = {}
  const open = await openShield()
  for (const row of rows) {
    const words = wordsOf(row)
    if (name === 'proxy' && isProxysOwn(words)) continue
    handle(open.cluster, strategy)
    const adapter = connectAdapter(name, open)
    for (const earlier of before) adapter.send(earlier)
    if (isAgain) {
      adapter.send(words)
      await settle()
    }
    const { kind, isSent } = adapter.send(words)
    all[row.name] = `${kind}${isSent ? ', sent' : ''}`
    await adapter.close()
    // A guard lasts no longer than until its answer.
    const { pendingWrites = 0 } = open.cluster.space(0).hot.get(hotKey) ?? {}
    expect([row.name, open.cluster.gate.isFlushing, pendingWrites]).toEqual([row.name, false, 0])
  }
  open.shield.close()
  return all
}

test.each(Object.entries({ ...facts, ...bindingFacts }))(
  'every command gets the same verdict through every adapter: %s',
  async (title, given) => {
    const gate = await outcomes('gate', given)
    for (const outcome of Object.values(gate)) {
      expect(outcome).toMatch(/^((pass|guarded|rewrite), sent|answer|loading|hold|refuse|combined(, sent)?)$/)
    }
    for (const name of ['ioredis', 'node-redis', ...(title in facts ? (['proxy'] as const) : [])] as const) {
      const through = await outcomes(name, given)
      const expected = Object.fromEntries(Object.keys(through).map((command) => [command, gate[command]]))
      expect(through, name).toEqual(expected)
    }
  },
)

const increments = [
  ['INCR', hotKey],
  ['DECR', hotKey],
  ['INCRBY', hotKey, '5'],
  ['DECRBY', hotKey, '-5'],
  ['HINCRBY', hotKey, 'field', '0'],
]

test.each(['gate', 'ioredis', 'node-redis', 'proxy'] as const)(
  'increments of a combined key through %s: the first is sent, the next one waits for its answer',
  async (name) => {
    const open = await openShield()
    for (const words of increments) {
      handle(open.cluster, undefined)
      handle(open.cluster, strategies.combined)
      const adapter = connectAdapter(name, open)
      expect([words[0], adapter.send(words)]).toEqual([words[0], { kind: 'combined', isSent: true }])
      expect([words[0], adapter.send(words)]).toEqual([words[0], { kind: 'combined', isSent: false }])
      // A later command takes it along.
      expect(adapter.send(['GET', 'other'])).toEqual({ kind: 'pass', isSent: true })
      await adapter.close()
    }
    for (const odd of [
      ['INCR', hotKey, 'x'],
      ['INCRBY', hotKey, '+1'],
      ['INCRBY', hotKey, '1.0'],
      ['INCRBY', hotKey, '01'],
      ['DECRBY', hotKey, '-9223372036854775808'],
      ['INCRBY', hotKey, '9007199254740993'],
      ['INCRBYFLOAT', hotKey, '1'],
      ['HINCRBY', hotKey, '1'],
      ['INCRBY', hotKey, '-0'],
      ['INCRBY', hotKey, ' 1'],
      ['INCRBY', hotKey, ''],
    ]) {
      const adapter = connectAdapter(name, open)
      expect([odd, adapter.send(odd)]).toEqual([odd, { kind: 'guarded', isSent: true }])
      await adapter.close()
    }
    open.shield.close()
  },
)

/** Facts that not every adapter has, each with its adapters and the outcome of a GET that is not in memory. */
const ownFacts: [string, AdapterName, Parameters<ReturnType<typeof connectAdapter>['send']>[1], string][] = [
  ['a pipeline', 'ioredis', { inPipeline: true }, 'guarded'],
  ['a pipeline', 'node-redis', { inPipeline: true }, 'guarded'],
  ['an abort signal', 'node-redis', { signal: new AbortController().signal }, 'guarded'],
]

test.each(ownFacts)('%s is a fact of %s', async (_, name, how, kind) => {
  const open = await openShield()
  const adapter = connectAdapter(name, open)
  expect(adapter.send(read, how)).toEqual({ kind, isSent: true })
  await adapter.close()
  open.shield.close()
})

test('a fence is specific to the proxy: commands that a client sent before a key was hot, or its own script, may have changed it', async () => {
  const open = await openShield()
  handle(open.cluster, undefined)
  const early = connectAdapter('proxy', open)
  early.send(['SET', hotKey, 'v'])
  handle(open.cluster, strategies.cached)
  expect(early.send(read).kind).toBe('guarded')
  const scripting = connectAdapter('proxy', open)
  expect(scripting.send(read).kind).toBe('loading')
  await settle()
  expect(scripting.send(read).kind).toBe('answer')
  scripting.send(['EVAL', 'return 1', '0'])
  expect(scripting.send(read).kind).toBe('guarded')
  open.shield.close()
})

test.each(['ioredis', 'node-redis', 'proxy'] as const)(
  'a read that waited in vain for a load bypasses memory, and is tracked until its answer: %s',
  async (name) => {
    const open = await openShield()
    handle(open.cluster, strategies.cached)
    const adapter = connectAdapter(name, open)
    const hot = open.cluster.space(0).hot.get(hotKey)!
    let answers = 0
    hot.overtaken = () => void answers++
    expect(adapter.send(read)).toEqual({ kind: 'loading', isSent: false })
    hot.abandon()
    await settle()
    expect(answers).toBe(0)
    await adapter.close()
    expect(answers).toBe(1)
    open.shield.close()
  },
)

test('what one client of the proxy has begun does not affect others', async () => {
  const open = await openShield()
  const binding = connectAdapter('proxy', open)
  for (const words of [['WATCH', 'other'], ['MULTI'], ['ASKING']]) binding.send(words)
  expect(connectAdapter('proxy', open).send(read).kind).toBe('loading')
  open.shield.close()
})
