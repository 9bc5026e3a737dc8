import { createHmac } from 'node:crypto'
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { SegmentIds, sqliteSegmentStore } from '@firebreak/ids'
import { sqliteOrderStore } from '@firebreak/sale'
import { startRedis, startSource, temporaryFolder, waitFor } from '@firebreak/testkit'
import { expect, test, vi } from 'vitest'
import { firebreak } from './call.ts'
import { RawSensor } from './raw-sensor.ts'
import { startVictim } from './victims.ts'

vi.setConfig({ testTimeout: 180_000 })

test('what a hub writes is for its own user: folders 0700, files 0600', async () => {
  const dataFolder = join(temporaryFolder('rest'), 'data')
  const main = new URL('../../packages/cli/src/main.ts', import.meta.url)
  const child = startSource(main, ['hub', '--port', '0', '--data-folder', dataFolder])
  await child.printed(/hub http/, 120_000)
  const modes = readdirSync(dataFolder).map((name) => [name, statSync(join(dataFolder, name)).mode & 0o777])
  await child.stop()
  expect(statSync(dataFolder).mode & 0o777).toBe(0o700)
  expect(modes.length).toBeGreaterThan(1)
  expect(modes.filter(([, mode]) => mode !== 0o600)).toEqual([])
})

test('ids and orders in SQLite are too, whatever the umask; a file that is shared stays shared', async () => {
  const folder = temporaryFolder('rest-sqlite')
  const mode = (name: string) => statSync(join(folder, name)).mode & 0o777
  const umask = process.umask(0o000)
  try {
    writeFileSync(join(folder, 'shared'), '', { mode: 0o660 })
    const stores = ['ids', 'shared'].map((name) => sqliteSegmentStore(join(folder, name)))
    const segments = await SegmentIds.start({ stores })
    await segments.addTag('orders', { step: 10 })
    const orders = await sqliteOrderStore(join(folder, 'orders'))
    for (const name of readdirSync(folder))
      expect([name, mode(name)]).toEqual([name, name.startsWith('shared') ? 0o660 : 0o600])
    expect(readdirSync(folder)).toContain('ids-wal')
    await Promise.all([segments.close(), orders.close()])
  } finally {
    process.umask(umask)
  }
})

test('a backup is for its own user too, also where a file is that others may read', async () => {
  const folder = temporaryFolder('rest-backup')
  const dataFolder = join(folder, 'data')
  await firebreak(['token', 'create', '--person', 'ann', '--role', 'admin', '--data-folder', dataFolder])
  const out = join(folder, 'backup.jsonl')
  writeFileSync(out, '')
  chmodSync(out, 0o644)
  const { output } = await firebreak(['backup', '--data-folder', dataFolder, '--out', out])
  expect(output).toContain('backed up: ')
  expect(statSync(out).mode & 0o777).toBe(0o600)
  expect(readFileSync(out, 'utf8')).toContain('"kind":"record","of":"credential"')
})

test('replies on disk are too, whatever the umask, in a folder that is open to others', async () => {
  const redis = await startRedis()
  const path = join(temporaryFolder('rest-disk'), 'tier')
  mkdirSync(path)
  chmodSync(path, 0o755)
  const umask = process.umask(0o000)
  try {
    const upstream = `redis://127.0.0.1:${redis.port}`
    const shield = { serviceId: 'shop', tableFile: false, diskTier: { path } }
    const proxy = await startVictim('proxy', { upstream, port: 0, shield })
    const files = () => readdirSync(path).map((name) => [name, statSync(join(path, name)).mode & 0o777])
    await waitFor(() => files().length === 3)
    expect(files().filter(([, mode]) => mode !== 0o600)).toEqual([])
    await proxy.child.stop()
  } finally {
    process.umask(umask)
    await redis.stop()
  }
})

test('a secret that stands in a flag is warned about, and not shown', async () => {
  const { output } = await firebreak([
    'hub',
    '--port',
    '0',
    '--nats-url',
    'nats://u:hidden-word@127.0.0.1:1',
    '--host',
    '0.0.0.0',
  ])
  expect(output).toContain('--nats-url is visible to every user of this machine (ps)')
  expect(output).toContain('FIREBREAK_HUB_NATS_URL_FILE')
  expect(output).not.toContain('hidden-word')
})

test('webhooks are signed, and not sent on by who answers them', async () => {
  const seen: { path: string; signature: unknown; body: string }[] = []
  const server = createServer((request: IncomingMessage, response) => {
    let body = ''
    request.on('data', (chunk) => (body += chunk))
    request.on('end', () => {
      seen.push({ path: request.url!, signature: request.headers['firebreak-signature'], body })
      if (request.url === '/moved') response.writeHead(307, { location: '/elsewhere' })
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const webhookSecret = 'a-secret-for-hooks'
  const options = { alarmWebhooks: [`${at}/hook`, `${at}/moved`], webhookSecret, maxInstanceAccessesPerSecond: 1000 }
  const hub = await startVictim('hub', options)
  const liar = await new RawSensor(hub.ports.http).answered()
  liar.report({ k: 1e9 })
  // The second try of the address that moved shows that the first did not follow.
  await waitFor(
    () => seen.filter(({ path }) => path === '/moved').length > 1 && seen.some(({ path }) => path === '/hook'),
  )
  await hub.child.stop()
  server.close()
  expect(seen.map(({ path }) => path)).not.toContain('/elsewhere')
  for (const { signature, body } of seen) {
    expect(signature).toBe(`sha256=${createHmac('sha256', webhookSecret).update(body).digest('hex')}`)
  }
})
