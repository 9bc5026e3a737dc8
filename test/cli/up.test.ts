import { fileURLToPath } from 'node:url'
import { protect, unprotect } from '@firebreak/client'
import { type GuardedChild, startChild, startCluster, startRedis, temporaryFolder, waitFor } from '@firebreak/testkit'
import { Cluster, Redis } from 'ioredis'
import { expect, test } from 'vitest'

const built = fileURLToPath(new URL('../../packages/cli/dist/main.js', import.meta.url))

const keys = Array.from({ length: 50 }, (_, index) => `key-${index}`)

test('up before a Redis Cluster prints a Cluster snippet that works, and raises no alarm about a sale', async () => {
  const cluster = await startCluster()
  const [first, second] = cluster.nodes
  // The second is given without its scheme, as a list of nodes is written.
  const { up, options } = await startUp(`redis://127.0.0.1:${first!.port},127.0.0.1:${second!.port}`)
  expect(up.output()).toContain(`the Redis Cluster at redis://127.0.0.1:${first!.port}`)
  const client = runSnippet(up.output())
  expect(client).toBeInstanceOf(Cluster)
  await Promise.all(keys.map((key) => client.set(key, 'one')))
  // The proxy answers for every slot too.
  const through = new Redis(up.output().match(/Proxy {4}(redis:\S+)/)![1]!)
  expect(await Promise.all(keys.map((key) => through.get(key)))).toEqual(keys.map(() => 'one'))
  const hub = up.output().match(/Console {2}(\S+)/)![1]!
  const asked = async (path: string) => (await (await fetch(`${hub}${path}`)).json()) as Record<string, unknown[]>
  expect((await asked('/v1/sales'))['vouchers']).toEqual([])
  await waitFor(async () => (await asked('/v1/engines'))['engines']!.length > 0, { what: 'the engine to be asked' })
  // Counted by the proxy and by the application under one name.
  await waitFor(
    async () => {
      await Promise.all([client.get('key-1'), through.get('key-1')])
      const found = (await asked('/v1/keys'))['keys'] as { key: string; services?: string[] }[]
      return found.some(
        ({ key, services }) => key === 'key-1' && services?.includes('shop') && services.includes('proxy'),
      )
    },
    { timeoutMs: 20_000, what: 'proxy and client to count one key together' },
  )
  expect(JSON.stringify((await asked('/v1/alarms'))['alarms'])).not.toContain('sale')
  const find = startChild(process.execPath, [built, 'find', 'big', '--json'], options)
  expect([await find.exited, find.output()]).toEqual([0, expect.stringContaining('key-1')])
  const drill = startChild(process.execPath, [built, 'drill', '--rounds', '1', '--clients', '2'], options)
  expect([await drill.exited, drill.output()]).toEqual([0, expect.stringContaining('Redis: the Redis Cluster at')])
  through.disconnect()
  unprotect(client)
  client.disconnect()
  await up.stop()
  await cluster.stop()
}, 120_000)

test('a list of nodes is enough while one of them answers; servers without a cluster are refused', async () => {
  const cluster = await startCluster()
  const [gone, other] = cluster.nodes
  await gone!.stop()
  const { up } = await startUp(`redis://127.0.0.1:${gone!.port},127.0.0.1:${other!.port}`)
  expect(up.output()).toContain('import { Cluster }')
  await up.stop()
  await cluster.stop()
  const servers = await Promise.all([startRedis(), startRedis()])
  const list = servers.map(({ port }) => `redis://127.0.0.1:${port}`).join(',')
  const refused = startChild(process.execPath, [built, 'up', '--data', temporaryFolder('up')], {
    env: { ...process.env, REDIS_URL: list },
  })
  expect(await refused.exited).toBe(1)
  expect(refused.output()).toContain('are not nodes of one Redis Cluster; name one server, or nodes of a cluster')
  await Promise.all(servers.map((server) => server.stop()))
}, 120_000)

test('up shows no password, and its snippet reads the address from REDIS_URL', async () => {
  const server = await startRedis({ args: ['--requirepass', 'hidden-word'] })
  const url = `redis://:hidden-word@127.0.0.1:${server.port}`
  const { up } = await startUp(url)
  expect(up.output()).toContain(`Redis    redis://:***@127.0.0.1:${server.port}`)
  expect(up.output()).not.toContain('hidden-word')
  const client = runSnippet(up.output(), { REDIS_URL: url })
  expect(await client.set('key', 'value')).toBe('OK')
  unprotect(client)
  client.disconnect()
  await up.stop()
  await server.stop()
}, 60_000)

async function startUp(url: string): Promise<{ up: GuardedChild; options: { cwd: string; env: NodeJS.ProcessEnv } }> {
  const options = { cwd: temporaryFolder('up'), env: { ...process.env } }
  delete options.env['REDIS_URL']
  const up = startChild(process.execPath, [built, 'up', '--port', '0', '--proxy-port', '0'], {
    ...options,
    env: { ...options.env, REDIS_URL: url },
  })
  await up.printed(/Ctrl-C stops everything/, 60_000)
  return { up, options }
}

/** The client that the printed code makes. */
function runSnippet(output: string, env: Record<string, string> = {}): Redis | Cluster {
  const code = output
    .slice(output.indexOf('import {'), output.indexOf('Ctrl-C stops'))
    .replaceAll(/^ *import .*$/gm, '')
  const run = new Function('protect', 'Redis', 'Cluster', 'process', `${code}\nreturn redis`)
  return run(protect, Redis, Cluster, { env }) as Redis | Cluster
}
