import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { startProxy } from '@firebreak/proxy'
import { makeAuthority, type RedisServer, startRedis, temporaryFolder, waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

const folder = temporaryFolder('proxy-certificates')
const [ours, theirs] = [makeAuthority(join(folder, 'ours')), makeAuthority(join(folder, 'theirs'), 'Somebody')]
const ends: (() => unknown)[] = []
let redis: RedisServer

beforeAll(async () => {
  redis = await startRedis()
  ends.push(() => redis.stop())
})
afterAll(async () => {
  for (const end of ends.toReversed()) await end()
})

/** A proxy whose files can be replaced. */
async function start(workers = 1) {
  const tlsFiles = {
    cert: join(folder, `${workers}.pem`),
    key: join(folder, `${workers}.key`),
    ca: join(folder, `${workers}-ca.pem`),
  }
  copyFileSync(ours.caFile, tlsFiles.ca)
  const install = ({ certFile, keyFile }: { certFile: string; keyFile: string }) => {
    copyFileSync(certFile, tlsFiles.cert)
    copyFileSync(keyFile, tlsFiles.key)
  }
  install(ours.issue('proxy'))
  const users = [
    { name: 'web', certificates: ['web.internal', 'spiffe://shop/web'] },
    { name: 'default', certificates: ['batch.internal'] },
    { name: 'ann', password: 'secret' },
  ]
  const told: string[] = []
  const logger = {
    info: (_: object, message: string) => told.push(message),
    warn: (_: object, message: string) => told.push(message),
  }
  const proxy = await startProxy({
    upstream: `redis://127.0.0.1:${redis.port}`,
    port: 0,
    tlsFiles,
    users,
    workers,
    logger,
  })
  ends.push(() => proxy.close())
  return { ...proxy, install, tlsFiles, told }
}

/** What a client gets for some commands; the error where it is not let in. */
async function ask(port: number, commands: string, options: ConnectionOptions = {}): Promise<string> {
  const socket: TLSSocket = connect({ port, host: '127.0.0.1', servername: 'localhost', ca: ours.ca, ...options })
  let text = ''
  const ended = new Promise<string>((resolve) => {
    socket.on('data', (chunk) => (text += chunk))
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(text || `refused: ${error.code}`))
    socket.on('close', () => resolve(text || 'refused: closed'))
  })
  socket.write(`${commands}\r\nQUIT\r\n`)
  return ended
}

test('a client certificate is an identity: its name makes the user, and no other user is open', async () => {
  const { port } = await start()
  const as = (name: string, alternatives: string) => ours.issue(name, alternatives)
  const whoami = 'CLIENT INFO'
  expect(await ask(port, whoami, as('any', 'DNS:web.internal'))).toContain('user=web')
  expect(await ask(port, whoami, as('any', 'URI:spiffe://shop/web'))).toContain('user=web')
  expect(await ask(port, whoami, as('batch.internal', 'DNS:x'))).toContain('user=default')
  // After RESET it is who it was at first.
  expect(await ask(port, `RESET\r\n${whoami}`, as('any', 'DNS:web.internal'))).toContain('user=web')
  // A name of nobody: the certificate opens the connection, and a password is asked for.
  const stranger = as('nobody', 'DNS:other.internal')
  expect(await ask(port, 'GET k', stranger)).toContain('-NOAUTH')
  expect(await ask(port, 'AUTH web anything\r\nGET k', stranger)).toMatch(/-WRONGPASS[\s\S]*-NOAUTH/)
  expect(await ask(port, 'AUTH anything\r\nGET k', stranger)).toMatch(/-WRONGPASS[\s\S]*-NOAUTH/)
  expect(await ask(port, `AUTH ann secret\r\n${whoami}`, stranger)).toContain('user=ann')
})

test('no certificate, or one of another authority, is not let in', async () => {
  const { port } = await start()
  expect(await ask(port, 'PING')).toMatch(/^refused/)
  expect(await ask(port, 'PING', theirs.issue('web.internal', 'DNS:web.internal'))).toMatch(/^refused/)
})

test.each([1, 2])(
  'certificates are read again when they change, in %i threads; broken ones leave the former',
  async (workers) => {
    const { port, install, tlsFiles, told } = await start(workers)
    const client = ours.issue('web.internal')
    const shown = () =>
      new Promise<string>((resolve, reject) => {
        const options = { port, host: '127.0.0.1', servername: 'localhost', ca: ours.ca, ...client }
        const socket = connect(options, () => {
          resolve(socket.getPeerCertificate().subject.CN as string)
          socket.destroy()
        }).on('error', reject)
      })
    // The kernel spreads connections over the threads by their port: fifty reach every thread.
    const everywhere = async () => {
      const names = new Set<string>()
      for (let batch = 0; batch < 10; batch++)
        for (const name of await Promise.all([1, 2, 3, 4, 5].map(shown))) names.add(name)
      return [...names].join(' and ')
    }
    expect(await everywhere()).toBe('proxy')
    install(ours.issue('proxy, renewed'))
    await waitFor(async () => (await everywhere()) === 'proxy, renewed')
    // A thread that looked between the two copies has complained already.
    const before = told.length
    writeFileSync(tlsFiles.cert, 'no certificate')
    await waitFor(() => told.slice(before).some((message) => message.includes('cannot be used')))
    expect(await everywhere()).toBe('proxy, renewed')
  },
)

test('a client of an authority that is trusted no more is ended, and others are not', async () => {
  const { port, tlsFiles } = await start()
  const stay = (options: ConnectionOptions) => {
    const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ca: ours.ca, ...options })
    const seen = { text: '', isClosed: false }
    socket.on('data', (chunk) => (seen.text += chunk))
    socket.on('error', () => {})
    socket.on('close', () => (seen.isClosed = true))
    ends.push(() => socket.destroy())
    socket.write('PING\r\n')
    return { seen, socket }
  }
  writeFileSync(tlsFiles.ca, `${ours.ca}${theirs.ca}`)
  const [leaving, staying] = [ours.issue('web.internal'), theirs.issue('batch.internal', 'DNS:batch.internal')]
  await waitFor(async () => /PONG/.test(await ask(port, 'PING', staying)))
  const [gone, there] = [stay(leaving), stay(staying)]
  await waitFor(() => /PONG/.test(gone.seen.text) && /PONG/.test(there.seen.text))
  writeFileSync(tlsFiles.ca, theirs.ca)
  await waitFor(() => gone.seen.isClosed)
  there.socket.write('PING\r\n')
  await waitFor(() => there.seen.text.split('PONG').length > 2)
})
