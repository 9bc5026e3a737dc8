import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { discover, findBigByScan, maskUrl, parseTarget, RedisConnection } from '@firebreak/find'
import { freePort, startRedis, temporaryFolder, waitFor } from '@firebreak/testkit'
import { expect, test } from 'vitest'

test('addresses are read from URLs, and a password is never shown', () => {
  expect(parseTarget('redis://alice:s%40crt@example.org:7000/3')).toEqual({
    host: 'example.org',
    port: 7000,
    username: 'alice',
    password: 's@crt',
    database: 3,
  })
  expect(parseTarget('rediss://[::1]')).toEqual({ host: '::1', port: 6379, tls: true })
  expect(parseTarget('unix:///run/redis.sock?db=2')).toEqual({ socketPath: '/run/redis.sock', database: 2 })
  expect(maskUrl('redis://alice:secret@host')).toBe('redis://alice:***@host')
  for (const wrong of ['localhost:6379', 'http://:secret@host', 'redis://host/x']) {
    expect(() => parseTarget(wrong)).toThrow(expect.objectContaining({ code: 'FB_FIND_TARGET' }))
  }
  expect(() => parseTarget('http://u:secret@host')).not.toThrow(/secret/)
})

test('a Unix socket, a user with a password, a database', async () => {
  const socketPath = join(temporaryFolder('socket'), 's')
  const server = await startRedis({ args: ['--unixsocket', socketPath] })
  await server.cli('ACL', 'SETUSER', 'alice', 'on', '>secret', '~*', '+@all')
  const connection = await RedisConnection.open({ socketPath, username: 'alice', password: 'secret', database: 5 })
  await connection.send(['SET', 'here', '1'])
  expect(Buffer.from((await connection.send(['CLIENT', 'LIST'])) as Uint8Array).toString()).toMatch(/db=5/)
  connection.close()
  const finding = await findBigByScan({ target: { socketPath, username: 'alice', password: 'secret', database: 5 } })
  expect(finding.keys.map(({ key }) => key)).toEqual(['here'])
  const refused = await RedisConnection.open({ port: server.port, username: 'alice', password: 'wrong-word' }).catch(
    (error) => error,
  )
  expect(refused.message).toMatch(/AUTH with: WRONGPASS/)
  expect(refused.message).not.toMatch(/wrong-word/)
  await server.stop()
})

test('TLS with a certificate that is checked', async () => {
  const folder = temporaryFolder('tls')
  const file = (name: string) => join(folder, name)
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' })
  openssl(
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-keyout',
    'key.pem',
    '-out',
    'cert.pem',
    '-days',
    '2',
    '-subj',
    '/CN=localhost',
    '-addext',
    'subjectAltName=DNS:localhost,IP:127.0.0.1',
  )
  const tlsPort = await freePort()
  const server = await startRedis({
    args: [
      '--tls-port',
      String(tlsPort),
      '--tls-cert-file',
      file('cert.pem'),
      '--tls-key-file',
      file('key.pem'),
      '--tls-ca-cert-file',
      file('cert.pem'),
      '--tls-auth-clients',
      'no',
    ],
  })
  const ca = readFileSync(file('cert.pem'), 'utf8')
  const connection = await RedisConnection.open({ port: tlsPort, tls: { ca } })
  expect(await connection.send(['PING'])).toBe('PONG')
  connection.close()
  await expect(RedisConnection.open({ port: tlsPort, tls: true })).rejects.toMatchObject({ code: 'FB_FIND_CONNECT' })
  const unchecked = await RedisConnection.open({ port: tlsPort, tls: { isVerified: false } })
  unchecked.close()
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

test('nobody there, and a server that goes away meanwhile, are errors with the address', async () => {
  const port = await freePort()
  await expect(RedisConnection.open({ port })).rejects.toThrow(
    new RegExp(`cannot connect to 127.0.0.1:${port}: .*ECONNREFUSED`),
  )
  const server = await startRedis()
  await server.cli('EVAL', "for i=1,20000 do redis.call('SET', i, i) end", '0')
  const looking = findBigByScan({ target: { port: server.port }, count: 100, keysPerSecond: 2000 })
  looking.catch(() => {})
  await waitFor(async () => /cmd=(memory|type|scan)/.test(await server.cli('CLIENT', 'LIST')))
  await server.stop()
  await expect(looking).rejects.toThrow(/closed the connection|ECONNRESET/)
})
