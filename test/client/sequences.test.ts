import { type RedisServer, scale, startRedis, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Fixture } from './fixture.ts'
import { type AnyClient, libraries } from './libraries.ts'

// Random sequences of commands, waited for or not, single, in pipelines and in transactions, with WATCH, scripts, other databases
// and lost connections: on a bare client with a server of its own, and on a protected one of which every key is hot.

let server: RedisServer
let bareServer: RedisServer
let fixture: Fixture

beforeAll(async () => {
  server = await startRedis()
  bareServer = await startRedis()
})
afterAll(async () => {
  await server.stop()
  await bareServer.stop()
})
beforeEach(async () => {
  fixture = await Fixture.start(server.port)
})
afterEach(() => fixture.close())

const keys = ['a', 'b', 'c']

/** Numbers from a seed, so that both clients do the same and a failure can be repeated. */
function chanceOf(seed: number): (below: number) => number {
  let state = seed * 2654435761 + 1
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

type Step =
  | { readonly kind: 'calls' | 'pipeline' | 'multi'; readonly commands: readonly (readonly string[])[] }
  | { readonly kind: 'watched'; readonly key: string; readonly isBroken: boolean }
  | { readonly kind: 'select'; readonly database: number }
  | { readonly kind: 'foreign'; readonly command: readonly string[] }
  | { readonly kind: 'lost' }

function commandsOf(chance: (below: number) => number): string[][] {
  const key = () => keys[chance(keys.length)]!
  const makers: (() => string[])[] = [
    () => ['GET', key()],
    () => ['GET', key()],
    () => ['GET', key()],
    () => ['STRLEN', key()],
    () => ['GETRANGE', key(), '0', '1'],
    () => ['TYPE', key()],
    () => ['EXISTS', key()],
    () => ['MGET', key(), key()],
    () => ['SET', key(), String(chance(100))],
    () => ['INCR', key()],
    () => ['APPEND', key(), 'x'],
    () => ['DEL', key()],
    () => ['RENAME', key(), key()],
    () => ['LPUSH', key(), 'e'],
    () => ['LRANGE', key(), '0', '-1'],
    () => ['GETDEL', key()],
    () => ['SET', key(), 'v', 'XX', 'GET'],
    () => ['EVAL', "return redis.call('SET', KEYS[1], ARGV[1])", '1', key(), String(chance(100))],
    () => ['EVAL', "return redis.call('GET', KEYS[1])", '1', key()],
    () => ['FLUSHDB'],
    () => ['GET'],
    () => ['GET', key(), 'more'],
  ]
  return Array.from({ length: 1 + chance(6) }, () => makers[chance(makers.length)]!())
}

function stepsOf(seed: number): Step[] {
  const chance = chanceOf(seed)
  return Array.from({ length: 12 }, (): Step => {
    const dice = chance(20)
    if (dice < 9) return { kind: 'calls', commands: commandsOf(chance) }
    if (dice < 12) return { kind: 'pipeline', commands: commandsOf(chance) }
    if (dice < 14) return { kind: 'multi', commands: commandsOf(chance) }
    if (dice < 16) return { kind: 'watched', key: keys[chance(keys.length)]!, isBroken: chance(2) === 0 }
    if (dice < 18) return { kind: 'foreign', command: ['SET', keys[chance(keys.length)]!, `f${chance(100)}`] }
    return dice === 18 ? { kind: 'select', database: chance(2) } : { kind: 'lost' }
  })
}

const textOf = (value: unknown): string => {
  if (value instanceof Error) return `${value.name}: ${value.message}`
  if (Array.isArray(value)) return `[${value.map(textOf).join()}]`
  return String(value)
}

async function settled(calls: readonly Promise<unknown>[]): Promise<string> {
  const ends = await Promise.allSettled(calls)
  return ends.map((end) => textOf(end.status === 'fulfilled' ? end.value : end.reason)).join(' | ')
}

/** Calls that throw at once count like those that fail. */
const called = async (call: () => Promise<unknown>) => call()

interface Side {
  readonly client: AnyClient
  readonly port: RedisServer
  database: number
}

async function run(side: Side, step: Step): Promise<string> {
  const { client, port } = side
  switch (step.kind) {
    case 'calls':
      return settled(step.commands.map((command) => called(() => client.call(command))))
    case 'pipeline':
      return settled([called(() => client.pipeline(step.commands))])
    case 'multi':
      return settled([called(() => client.multi(step.commands))])
    case 'watched': {
      await client.watch(step.key)
      const before = await settled([client.get(step.key)])
      if (step.isBroken) await port.cli('-n', String(side.database), 'SET', step.key, 'broken')
      return `${before} ${await settled([client.multi([['SET', step.key, 'watched']])])}`
    }
    case 'select':
      side.database = step.database
      return settled([client.select(step.database)])
    case 'foreign': {
      const [, key, value] = step.command
      await port.cli('-n', String(side.database), ...step.command)
      // Another's write is seen as soon as its push is.
      await waitFor(async () => (await client.get(key!)) === value, { timeoutMs: 5000, everyMs: 1, what: 'the push' })
      return value!
    }
    case 'lost':
      await port.cli('CLIENT', 'KILL', 'TYPE', 'normal')
      await waitFor(async () =>
        client
          .call(['PING'])
          .then((reply) => reply === 'PONG')
          .catch(() => false),
      )
      return 'lost'
  }
}

describe.each(Object.keys(libraries))('%s', (name) => {
  test('answers as a bare client does', { timeout: 120_000 }, async () => {
    const open = (port: number) => libraries[name]!({ kind: 'standalone', port })
    for (let round = 0; round < scale(5, 300); round++) {
      const seed = round + 1
      const bare: Side = { client: await open(bareServer.port), port: bareServer, database: 0 }
      const ours: Side = { client: await open(server.port), port: server, database: 0 }
      await bareServer.cli('FLUSHALL')
      await server.cli('FLUSHALL')
      ;(ours.client.raw as { on(event: string, listener: () => void): void }).on('error', () => {})
      ;(bare.client.raw as { on(event: string, listener: () => void): void }).on('error', () => {})
      await fixture.adopt(ours.client.raw)
      fixture.hub.heat('main', keys)
      const steps = stepsOf(seed)
      for (const [index, step] of steps.entries()) {
        const expected = await run(bare, step)
        expect(await run(ours, step), `seed ${seed}, step ${index}: ${JSON.stringify(step)}`).toBe(expected)
      }
      bare.client.close()
      fixture.hub.cool('main', keys)
    }
  })
})
