import { expect, test } from 'vitest'
import { startEtcd } from './etcd-server.ts'
import { startMariadb } from './mariadb-server.ts'
import { startPostgres } from './postgres-server.ts'
import { startZooKeeper } from './zookeeper-server.ts'

test('a MariaDB keeps its rows after a kill and a restart on the same port', async () => {
  const first = await startMariadb()
  await first.sql('CREATE TABLE t (id BIGINT); INSERT INTO t VALUES (7)')
  first.child.signal('SIGKILL')
  const second = await first.restart()
  expect(second.port).toBe(first.port)
  expect(await second.sql('SELECT id FROM t')).toBe('7')
  await second.stop()
})

test('a PostgreSQL keeps its rows after a kill and a restart on the same port', async () => {
  const first = await startPostgres()
  await first.sql('CREATE TABLE t (id BIGINT); INSERT INTO t VALUES (7)')
  first.child.signal('SIGKILL')
  const second = await first.restart()
  expect(second.port).toBe(first.port)
  expect(await second.sql('SELECT id FROM t')).toBe('7')
  await second.stop()
})

test('a ZooKeeper answers again on the same port after a kill', async () => {
  const first = await startZooKeeper()
  first.child.signal('SIGKILL')
  const second = await first.restart()
  expect(second.address).toBe(first.address)
  expect(await second.ask('ruok')).toBe('imok')
  await second.stop()
})

test('an etcd keeps its keys after a kill and a restart', async () => {
  const first = await startEtcd()
  const put = JSON.stringify({ key: btoa('k'), value: btoa('v') })
  await fetch(`${first.url}/v3/kv/put`, { method: 'POST', body: put })
  first.child.signal('SIGKILL')
  const second = await first.restart()
  const answer = await fetch(`${second.url}/v3/kv/range`, { method: 'POST', body: JSON.stringify({ key: btoa('k') }) })
  expect(await answer.json()).toMatchObject({ kvs: [{ value: btoa('v') }] })
  await second.stop()
})
