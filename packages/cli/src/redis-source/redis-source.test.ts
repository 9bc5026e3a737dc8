import { existsSync } from 'node:fs'
import {
  freePort,
  makeAuthority,
  redisProgram,
  startChild,
  startRedis,
  startSource,
  temporaryFolder,
  waitFor,
} from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openRedis, type RedisSource } from './redis-source.ts'

describe('which Redis is used', () => {
  test('the one of a URL, left running, its password masked', async () => {
    const server = await startRedis({ args: ['--requirepass', 'secret'] })
    const source = await openRedis({ url: `redis://:secret@127.0.0.1:${server.port}/0` })
    expect(source.kind).toBe('url')
    expect(source.description).not.toContain('secret')
    await source.stop()
    expect(server.child.process.exitCode).toBe(null)
    await server.stop()
  })

  test('else a server on PATH, ended with us', async () => {
    const source = await openRedis()
    expect(source.kind).toBe('server')
    const client = new Redis(source.url)
    expect(await client.ping()).toBe('PONG')
    client.disconnect()
    await source.stop()
    await expect(openRedis({ url: 'nonsense' })).rejects.toMatchObject({ code: 'FB_REDIS_URL' })
  })
})

test('where a server speaks TLS and the URL does not, or the other way round, the error says what to write', async () => {
  const authority = makeAuthority(temporaryFolder('redis-source'))
  const { certFile, keyFile } = authority.issue('localhost')
  const tlsPort = await freePort()
  const files = ['--tls-cert-file', certFile, '--tls-key-file', keyFile, '--tls-ca-cert-file', authority.caFile]
  const server = startChild(redisProgram(), ['--port', '0', '--tls-port', String(tlsPort), ...files, '--save', ''])
  await server.printed(/[Rr]eady to accept/)
  const asked = (url: string) => openRedis({ url, answerWithinMs: 1 })
  await expect(asked(`redis://127.0.0.1:${tlsPort}`)).rejects.toThrow('. If it uses TLS, write rediss:// instead')
  await server.stop()
  const plain = await startRedis()
  await expect(asked(`rediss://127.0.0.1:${plain.port}`)).rejects.toThrow('. If it does not use TLS, write redis://')
  await plain.stop()
})

test('a server that was started for a process that is killed ends with it', async () => {
  const owner = startSource(new URL('./testing/redis-owner.ts', import.meta.url), [String(await freePort())])
  const [, url] = await owner.printed(/^(redis:\S+)/m)
  const client = new Redis(url!, { retryStrategy: () => null })
  client.on('error', () => {})
  const pid = Number(/process_id:(\d+)/.exec(await client.info('server'))![1])
  const ended = new Promise((resolve) => client.once('end', resolve))
  owner.signal('SIGKILL')
  await ended
  await waitFor(() => !existsSync(`/proc/${pid}`))
})

describe('the embedded Valkey', () => {
  let source: RedisSource
  let client: Redis
  beforeAll(async () => {
    source = await openRedis({ path: '' })
    client = new Redis(source.url)
  })
  afterAll(async () => {
    client.disconnect()
    await source.stop()
  })

  test('is used where there is nothing else, and says so', () => {
    expect(source.kind).toBe('embedded')
    expect(source.description).toMatch(/embedded Valkey .*no persistence/)
  })

  test('is a real server: scripts, streams, tracking', async () => {
    expect(await client.eval('return {KEYS[1], ARGV[1]}', 1, 'a', 'b')).toEqual(['a', 'b'])
    await client.xadd('stream', '*', 'f', 'v')
    expect(await client.xlen('stream')).toBe(1)
    expect(await client.call('CLIENT', 'TRACKING', 'ON')).toBe('OK')
    await client.call('CLIENT', 'TRACKING', 'OFF')
  })

  test('answers a lone request far sooner than the package as published does', async () => {
    await client.set('k', 'v')
    const port = await freePort()
    const published = startSource(new URL('./testing/published-valkey.ts', import.meta.url), [String(port)])
    await published.printed(/ready/)
    const slow = new Redis(port)
    await slow.set('k', 'v')
    const prompt = await medianGetMs(client, 40)
    const unmended = await medianGetMs(slow, 5)
    slow.disconnect()
    await published.stop()
    expect(prompt).toBeLessThan(unmended / 10)
  })

  test('answers a thousand pipelined requests and one of a megabyte without waiting for its timer', async () => {
    const started = performance.now()
    const answers = await Promise.all(Array.from({ length: 1000 }, () => client.get('k')))
    const elapsed = performance.now() - started
    expect(answers.every((answer) => answer === 'v')).toBe(true)
    const large = 'x'.repeat(1_000_000)
    const before = performance.now()
    await client.set('large', large)
    expect((await client.get('large'))?.length).toBe(large.length)
    const largeElapsed = performance.now() - before
    // At 16 KB a timer tick of 100 ms the megabyte alone would take over 6 s, and the pipeline about 200 ms.
    expect(elapsed + largeElapsed).toBeLessThan(3000)
  })
})

async function medianGetMs(client: Redis, count: number): Promise<number> {
  const times: number[] = []
  for (let index = 0; index < count; index++) {
    const started = performance.now()
    await client.get('k')
    times.push(performance.now() - started)
  }
  return times.sort((a, b) => a - b)[count >> 1]!
}
