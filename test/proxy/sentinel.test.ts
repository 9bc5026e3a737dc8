import { type FirebreakProxy, startProxy } from '@firebreak/proxy'
import { type RedisSentinel, startRedis, startSentinel, waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RawClient } from './raw-client.ts'

let group: RedisSentinel
let proxy: FirebreakProxy

beforeAll(async () => {
  group = await startSentinel()
  const upstream = group.sentinels.map(({ host, port }) => `${host}:${port}`).join(',')
  proxy = await startProxy({ upstream, port: 0, sentinelGroup: group.name })
})

afterAll(async () => {
  await proxy?.close()
  await group?.stop()
})

test('the master is asked for, and a failover under load costs no read an error', async () => {
  const [reader, writer] = [await RawClient.connect(proxy.port), await RawClient.connect(proxy.port)]
  expect(await reader.ask('FIREBREAK', 'INFO')).toContain('firebreak_mode:sentinel')
  expect(await writer.ask('SET', 'k', 'before')).toBe('+OK\r\n')
  expect(await writer.ask('MULTI')).toBe('+OK\r\n')
  expect(await writer.ask('INCR', 'n')).toBe('+QUEUED\r\n')
  expect(await writer.ask('EXEC')).toBe('*1\r\n:1\r\n')
  await waitFor(async () => (await group.servers[1]!.cli('GET', 'k')) === 'before')
  let isOver = false
  const wrong: string[] = []
  let reads = 0
  const load = (async () => {
    while (!isOver) {
      const reply = await reader.ask('GET', 'k')
      reads++
      if (reply !== '$6\r\nbefore\r\n') wrong.push(reply)
    }
  })()
  const before = await group.masterPort()
  await group.failover()
  expect(await group.masterPort()).not.toBe(before)
  const port = await group.masterPort()
  const master = group.servers.find((server) => server.port === port)!
  // The old master takes writes until the Sentinels have told it that it is none.
  await waitFor(async () => {
    await writer.ask('SET', 'other', 'after')
    return (await master.cli('GET', 'other')) === 'after'
  })
  const seen = reads
  await waitFor(() => reads > seen + 20)
  isOver = true
  await load
  expect(wrong).toEqual([])
  await Promise.all([reader.close(), writer.close()])
})

test('one Redis shows itself as a cluster of one where it is asked to', async () => {
  const server = await startRedis()
  const plain = await startProxy({ upstream: server.url, port: 0 })
  const clustered = await startProxy({
    upstream: server.url,
    port: 0,
    asCluster: true,
    announce: { host: 'h', port: 7 },
  })
  const [one, two] = [await RawClient.connect(plain.port), await RawClient.connect(clustered.port)]
  expect(await one.ask('CLUSTER', 'SLOTS')).toBe('-ERR This instance has cluster support disabled\r\n')
  expect(await two.ask('CLUSTER', 'SLOTS')).toContain(':16383\r\n*4\r\n$1\r\nh\r\n:7\r\n')
  await Promise.all([one.close(), two.close()])
  await Promise.all([plain.close(), clustered.close()])
  await server.stop()
})
