import { allCommands, type CommandFlag, type CommandRow } from '@firebreak/core/commands'
import { type RedisServer, scale, startRedis } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { compareKeys, rowOf } from './compare-keys.ts'
import { Connection } from './connection.ts'
import { type CommandInfo, serverCommands } from './server-commands.ts'

// The table's rows without `since` are those of Redis 7.0: this server.
let server: RedisServer
let connection: Connection
let infos: CommandInfo[]

beforeAll(async () => {
  server = await startRedis()
  connection = await Connection.open(server.port)
  infos = await serverCommands(connection)
})

afterAll(async () => {
  connection.close()
  await server.stop()
})

/** For every command of the server: what the table says of it and what the server does. */
function compare<Fact>(ofRow: (row: CommandRow) => Fact, ofInfo: (info: CommandInfo) => Fact): [object, object] {
  const ours: Record<string, Fact | undefined> = {}
  const theirs: Record<string, Fact> = {}
  for (const info of infos) {
    const row = rowOf(info.name)
    ours[info.name] = row === undefined ? undefined : ofRow(row)
    theirs[info.name] = ofInfo(info)
  }
  return [ours, theirs]
}

test('every command and subcommand of the server has a row with its arity', () => {
  expect(infos.length).toBeGreaterThan(350)
  const [ours, theirs] = compare(
    ({ name, arity }) => ({ name, arity }),
    ({ name, arity }) => ({ name: name.toUpperCase().replace('|', ' '), arity }),
  )
  expect(ours).toEqual(theirs)
})

test('every row that is not marked as newer is a command of the server, and no newer one is', () => {
  const names = new Set([...infos].map(({ name }) => name.toUpperCase().replace('|', ' ')))
  const old = allCommands().filter(({ since }) => since === undefined)
  expect(old.map(({ name }) => name).filter((name) => !names.has(name))).toEqual([])
  expect(old).toHaveLength(infos.length)
  const newer = allCommands().filter(({ since }) => since !== undefined)
  expect(newer.map(({ name }) => name).filter((name) => names.has(name))).toEqual([])
})

test('reads and writes are those of the server', () => {
  const [ours, theirs] = compare(
    ({ access }) => access,
    ({ flags }) => (flags.includes('write') ? 'write' : flags.includes('readonly') ? 'read' : 'none'),
  )
  expect(ours).toEqual(theirs)
})

test('the positions of the first and last key and the step are those of the server', () => {
  const [ours, theirs] = compare(legacyRange, ({ range, hasShardChannels }) => (hasShardChannels ? [0, 0, 0] : range))
  expect(ours).toEqual(theirs)
})

/** COMMAND's first, last and step of a row: the ranges at its begin that follow each other. */
function legacyRange({ keys, firstKey, name }: CommandRow): readonly number[] {
  if (name === 'MIGRATE') return [3, 3, 1]
  const first = keys[0]
  if (first?.kind !== 'range') return firstKey === 0 ? [0, 0, 0] : [firstKey, firstKey, 1]
  let { last } = first
  for (const next of keys.slice(1)) if (next.kind === 'range' && next.first === last + 1) last = next.last
  return [first.first, last, first.step]
}

test.each<[CommandFlag, (info: CommandInfo) => boolean]>([
  ['movable', ({ flags }) => flags.includes('movablekeys')],
  ['pubsub', ({ flags }) => flags.includes('pubsub')],
  ['admin', ({ flags, categories }) => flags.includes('admin') || categories.includes('@admin')],
  ['connection', ({ categories }) => categories.includes('@connection')],
  ['transaction', ({ categories }) => categories.includes('@transaction')],
  ['scripting', ({ categories }) => categories.includes('@scripting')],
  ['sharded', ({ hasShardChannels }) => hasShardChannels],
  // WAIT blocks too, although only newer servers say so.
  ['blocking', ({ flags, name }) => flags.includes('blocking') || name === 'wait'],
])('the flag %s is set where the server sets it', (flag, ofInfo) => {
  const [ours, theirs] = compare(({ flags }) => flags.has(flag), ofInfo)
  expect(ours).toEqual(theirs)
})

test('the type is that of the server, if the server gives one', () => {
  const categories: Record<string, string> = { sortedset: 'zset' }
  for (const { name, categories: theirs } of infos) {
    if (name.startsWith('sort')) continue
    for (const type of ['string', 'bitmap', 'hyperloglog', 'hash', 'list', 'set', 'sortedset', 'geo', 'stream']) {
      if (theirs.includes(`@${type}`)) expect(rowOf(name)?.type, name).toBe(categories[type] ?? type)
    }
  }
})

test('for arguments of every form, keys and their access flags are those of COMMAND GETKEYSANDFLAGS', async () => {
  const listsPerCommand = scale(60, 1_000)
  const compared = await compareKeys(connection, infos, listsPerCommand)
  expect(compared.lists).toBeGreaterThan(infos.length * listsPerCommand * 0.8)
  expect(compared.keys).toBeGreaterThan(compared.lists / 2)
})
