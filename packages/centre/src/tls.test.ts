import { writeFileSync } from 'node:fs'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { makeAuthority, startEtcd, startZooKeeper, temporaryFolder } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openCentre } from './open-centre.ts'

const folder = temporaryFolder('centre-tls')
const [ours, theirs] = [makeAuthority(join(folder, 'ours')), makeAuthority(join(folder, 'theirs'), 'Somebody')]
const ends: (() => unknown)[] = []
const ports: Record<string, number> = {}

/** TLS in front of a server; clients must present a certificate of ours. */
async function front(port: number): Promise<number> {
  const options = { ...ours.issue('localhost'), ca: ours.ca, requestCert: true, rejectUnauthorized: true }
  const server = createServer(options, (socket) => {
    const behind = connect(port, '127.0.0.1')
    socket.pipe(behind).pipe(socket)
    for (const end of [socket, behind]) end.on('error', () => end.destroy())
    socket.on('close', () => behind.destroy())
  })
  server.on('tlsClientError', () => {})
  await new Promise<void>((resolve) => void server.listen(0, resolve))
  ends.push(() => server.close())
  return (server.address() as AddressInfo).port
}

beforeAll(async () => {
  const [etcd, zookeeper] = await Promise.all([startEtcd(), startZooKeeper()])
  ends.push(() => Promise.all([etcd.stop(), zookeeper.stop()]))
  ports['etcds'] = await front(etcd.port)
  ports['zookeepers'] = await front(zookeeper.port)
  const { cert, key } = ours.issue('client')
  writeFileSync(join(folder, 'client.pem'), cert)
  writeFileSync(join(folder, 'client.key'), key)
})
afterAll(async () => {
  for (const end of ends.reverse()) await end()
})

test.each(['etcds', 'zookeepers'])(
  '%s: the files of the URL are used, and another authority is refused',
  async (kind) => {
    const urlOf = (caFile: string, more: string) => `${kind}://localhost:${ports[kind]}/t?ca=${caFile}${more}`
    const shown = `&cert=${join(folder, 'client.pem')}&key=${join(folder, 'client.key')}`
    const good = openCentre(urlOf(ours.caFile, shown))
    await good.write('/t/shop', 'x')
    expect(await good.read('/t/shop')).toBe('x')
    await good.close()
    for (const url of [urlOf(theirs.caFile, shown), urlOf(ours.caFile, ''), `${kind}://localhost:${ports[kind]}/t`]) {
      const bad = openCentre(url)
      await expect(bad.read('/t/shop')).rejects.toMatchObject({ code: 'FB_CENTRE_DOWN' })
      await bad.close()
    }
  },
)
