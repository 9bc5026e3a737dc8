import { fileURLToPath } from 'node:url'
import { freePort, type GuardedChild, scale, startSource, waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { compareKeys, rowOf } from './compare-keys.ts'
import { Connection } from './connection.ts'
import { type CommandInfo, serverCommands } from './server-commands.ts'

// A Valkey 9.1 knows the commands of Redis 7.0 and most of the newer ones.
let child: GuardedChild
let connection: Connection
let infos: CommandInfo[]

beforeAll(async () => {
  const port = await freePort()
  child = startSource(fileURLToPath(new URL('./valkey-server.ts', import.meta.url)), [String(port)])
  connection = await waitFor(() => Connection.open(port).catch(() => undefined), { what: () => child.output() })
  infos = await serverCommands(connection)
})

afterAll(async () => {
  connection.close()
  await child.stop()
})

test('every command and subcommand of a Valkey 9 has a row that reads or writes as it does', () => {
  expect(infos.length).toBeGreaterThan(380)
  const accessOf = ({ flags }: CommandInfo) =>
    flags.includes('write') ? 'write' : flags.includes('readonly') ? 'read' : 'none'
  const ours = infos.map(({ name }) => [name, rowOf(name)?.access])
  expect(ours).toEqual(infos.map((info) => [info.name, accessOf(info)]))
})

test('the arity of the newer commands is that of a Valkey 9', () => {
  const newer = infos.filter(({ name }) => rowOf(name)?.since !== undefined)
  expect(newer.length).toBeGreaterThan(30)
  expect(newer.map(({ name }) => [name, rowOf(name)?.arity])).toEqual(newer.map(({ name, arity }) => [name, arity]))
})

test('for arguments of every form, keys are those of COMMAND GETKEYSANDFLAGS of a Valkey 9', async () => {
  const compared = await compareKeys(connection, infos, scale(10, 200))
  expect(compared.keys).toBeGreaterThan(compared.lists / 2)
})
