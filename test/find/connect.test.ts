import { join } from 'node:path'
import { discover, findBigByScan } from '@firebreak/find'
import { freePort, startRedis, temporaryFolder, waitFor } from '@firebreak/testkit'
import { expect, test } from 'vitest'

test('a Unix socket, a user with a password, a database', async () => {
  const socketPath = join(temporaryFolder('socket'), 's')
  const server = await startRedis({ args: ['--unixsocket', socketPath] })
  await server.cli('ACL', 'SETUSER', 'alice', 'on', '>secret', '~*', '+@all')
  await server.cli('-n', '5', 'SET', 'here', '1')
  const finding = await findBigByScan({ target: { socketPath, username: 'alice', password: 'secret', database: 5 } })
  expect(finding.keys.map(({ key }) => key)).toEqual(['here'])
  await server.stop()
})

test('a Sentinel leads to its master and its replicas', async () => {
  const master = await startRedis()
  const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(master.port)] })
  await waitFor(async () => (await replica.cli('INFO', 'replication')).includes('master_link_status:up'), {
    timeoutMs: 30_000,
  })
  const { writeFileSync } = await import('node:fs')
  const config = join(temporaryFolder('sentinel'), 'sentinel.conf')
  writeFileSync(config, `sentinel monitor shop 127.0.0.1 ${master.port} 1\n`)
  const { startChild } = await import('@firebreak/testkit')
  const port = await freePort()
  const sentinel = startChild('redis-server', [config, '--sentinel', '--port', String(port), '--bind', '127.0.0.1'])
  await sentinel.printed(/\+monitor master shop/)
  await master.cli('SET', 'k', 'v'.repeat(1000))
  const topology = await waitFor(async () => {
    const found = await discover({ port }).catch(() => undefined)
    return found !== undefined && found.replicas.get(`127.0.0.1:${master.port}`)?.length === 1 ? found : undefined
  })
  expect(topology).toMatchObject({ kind: 'sentinel', masters: [{ address: `127.0.0.1:${master.port}` }] })
  await waitFor(async () => (await replica.cli('DBSIZE')) === '1')
  const finding = await findBigByScan({ target: { port }, sentinelMaster: 'shop' })
  expect(finding.keys).toMatchObject([{ key: 'k', node: `127.0.0.1:${replica.port}` }])
  await expect(discover({ port }, { sentinelMaster: 'other' })).rejects.toThrow(/does not know a master "other"/)
  await sentinel.stop()
  await replica.stop()
  await master.stop()
})

test('no server, and a server that disappears meanwhile, are errors with the address', async () => {
  const port = await freePort()
  await expect(discover({ port })).rejects.toThrow(new RegExp(`cannot connect to 127.0.0.1:${port}: .*ECONNREFUSED`))
  const server = await startRedis()
  await server.cli('EVAL', "for i=1,20000 do redis.call('SET', i, i) end", '0')
  const looking = findBigByScan({ target: { port: server.port }, count: 100, keysPerSecond: 2000 })
  looking.catch(() => {})
  await waitFor(async () => /cmd=(memory|type|scan)/.test(await server.cli('CLIENT', 'LIST')))
  await server.stop()
  await expect(looking).rejects.toThrow(/closed the connection|ECONNRESET/)
})
