import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis as Ioredis6 } from 'ioredis'
import { Redis as Ioredis5 } from 'ioredis5'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Redis } from '../redis.ts'
import { defineScript } from '../script/redis-script.ts'
import type { IoredisLike } from './ioredis.ts'
import { ScriptCommand } from './ioredis-script-command.ts'
import { toRedis } from './to-redis.ts'

/** Everything it received, unchanged. */
const echo = defineScript('echo', 'return { KEYS, ARGV }')
const once = { atMostOnce: true, asBytes: true }

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

const opened: IoredisLike[] = []
afterEach(() => {
  for (const client of opened.splice(0)) client.disconnect()
})

const versions = {
  'ioredis 6': (options: object): IoredisLike => new Ioredis6(options),
  'ioredis 5': (options: object): IoredisLike => new Ioredis5(options),
}
type Version = keyof typeof versions

function open(version: Version, options: object = {}): { client: IoredisLike; redis: Redis; sent: unknown[] } {
  const client = versions[version]({ port: server.port, ...options })
  client.on('error', () => {})
  opened.push(client)
  const sent: unknown[] = []
  const sender = client as unknown as { sendCommand(command: unknown, ...rest: unknown[]): unknown }
  const { sendCommand } = sender
  sender.sendCommand = (command, ...rest) => {
    sent.push(command)
    return sendCommand.call(client, command, ...rest)
  }
  return { client, redis: toRedis(client), sent }
}

const each = test.each(Object.keys(versions) as Version[])

each('%s: keys and arguments arrive as they were, be they text, numbers or bytes', async (version) => {
  const { redis, sent } = open(version)
  await redis.send(['SCRIPT', 'FLUSH'])
  const bytes = Buffer.from([0, 255, 13, 10, 36])
  const keys = ['ключ', bytes, '']
  const args = ['', 'a\r\nb', 3_600_000_000_000, -1, 0.5, bytes, 'π', new Uint8Array([1, 2]).subarray(1)]
  const reply = await redis.run(echo, keys, args, once)
  const asBytes = (part: string | number | Uint8Array) => Buffer.from(typeof part === 'object' ? part : String(part))
  expect(reply).toEqual([keys.map(asBytes), args.map(asBytes)])
  // The first gets NOSCRIPT, and the second sends the source.
  expect(sent.filter((command) => command instanceof ScriptCommand).map(({ name }) => name)).toEqual([
    'evalsha',
    'eval',
  ])
})

each('%s: an error of the script rejects with the server’s own, and names the call', async (version) => {
  const { redis } = open(version)
  const failing = defineScript('failing', "return redis.error_reply('SORRY not today')")
  await redis.run(failing, ['k'], ['v'], once).catch(() => {})
  await expect(redis.run(failing, ['k'], ['v'], once)).rejects.toMatchObject({
    message: expect.stringContaining('SORRY not today'),
    command: { name: 'evalsha', args: [failing.sha1, 1, 'k', 'v'] },
  })
})

each('%s: calls before the connection stands wait for it, and are rejected where it is given up', async (version) => {
  const { redis, client } = open(version, { lazyConnect: true })
  expect(await redis.run(echo, [], ['early'], once)).toEqual([[], [Buffer.from('early')]])
  client.disconnect()
  await waitFor(() => client.status === 'end')
  await expect(redis.run(echo, [], ['late'], once)).rejects.toThrow('Connection is closed')
})

each('%s: a client whose options change commands sends its own', async (version) => {
  const prefixed = open(version, { keyPrefix: 'app:' })
  expect(await prefixed.redis.run(echo, ['k'], [], once)).toEqual([[Buffer.from('app:k')], []])
  const timed = open(version, { commandTimeout: 60_000 })
  expect(await timed.redis.run(echo, ['k'], [], once)).toEqual([[Buffer.from('k')], []])
  expect([...prefixed.sent, ...timed.sent].some((command) => command instanceof ScriptCommand)).toBe(false)
})
