import { Sale, saleKeys } from '@firebreak/sale'
import { type RedisServer, startRedis } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { CommandIo } from '../../command/command.ts'
import { runCommand } from '../../command/run-command.ts'
import { commands } from '../index.ts'

let server: RedisServer
let client: Redis
beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.port)
})
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

async function firebreak(...words: string[]) {
  let out = ''
  let said = ''
  const io = {
    env: { FIREBREAK_SALE_REDIS: server.url },
    stdout: { write: (text: string) => (out += text) },
    stderr: { write: (text: string) => (said += text) },
    signal: new AbortController().signal,
  } as unknown as CommandIo
  const code = await runCommand(commands, ['sale', 'dead', ...words], io)
  return { code, out, said }
}

test('dead letters are listed with the reason, replayed in their order, and discarded', async () => {
  const sale = new Sale(client, { ids: { next: () => 'x' } })
  await sale.open({ id: '42', begin: 1, end: 2, stock: 1 })
  const { dead, orders } = saleKeys('42')
  const bury = (order: string) =>
    client.xadd(dead, '*', 'entry', '1-1', 'reason', 'no room', 'kind', 'placed', 'order', order, 'user', 'ann')
  const ids = [await bury('a'), await bury('b'), await bury('c')] as string[]
  expect((await firebreak('list')).out).toMatch(/42 .*placed +a +ann +no room/)
  const listed = JSON.parse((await firebreak('list', '--voucher', '42', '--json')).out) as {
    id: string
    reason: string
  }[]
  expect(listed.map(({ id }) => id)).toEqual(ids)
  expect(await firebreak('discard', '--voucher', '42', '--id', ids[1]!)).toMatchObject({
    code: 0,
    out: '1 of 1 letters discarded\n',
  })
  expect((await firebreak('discard', '--voucher', '42', '--id', ids[1]!)).code).toBe(1)
  expect((await firebreak('replay', '--voucher', '42', '--all')).out).toBe('2 of 2 letters replayed\n')
  expect((await client.xrange(orders, '-', '+')).map(([, fields]) => fields)).toEqual([
    ['kind', 'placed', 'order', 'a', 'user', 'ann'],
    ['kind', 'placed', 'order', 'c', 'user', 'ann'],
  ])
  expect((await firebreak('list')).out).toBe('There are no dead letters.\n')
  await sale.close()
})

test.each([
  [[], 'is not list, replay or discard'],
  [['replay', '--all'], 'needs --voucher'],
  [['replay', '--voucher', '42'], 'needs either --id or --all'],
  [['discard', '--voucher', '42', '--all', '--id', '1-1'], 'needs either --id or --all'],
])('sale dead %j is wrong usage', async (words, sentence) => {
  const { code, said } = await firebreak(...words)
  expect(code).toBe(2)
  expect(said).toContain(sentence)
})
