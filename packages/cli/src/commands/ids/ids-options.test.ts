import { expect, test } from 'vitest'
import { idsOptionsOf } from './ids-options.ts'

const read = (args: readonly string[], env: Record<string, string> = {}) =>
  idsOptionsOf(args, { env, stderr: process.stderr })

test('the defaults: loopback, an SQLite file, no snowflakes', () => {
  expect(read([])).toMatchObject({
    host: '127.0.0.1',
    port: 8070,
    respPort: 8071,
    databases: ['sqlite:firebreak-ids.db'],
    tags: [],
    registry: { kind: 'none' },
  })
})

test('flags win over the environment, and both can name several', () => {
  const env = { FIREBREAK_IDS_PORT: '1', FIREBREAK_IDS_DATABASE: 'sqlite:a,sqlite:b', FIREBREAK_IDS_TAG: 'x' }
  expect(read(['--tag', 'order:5', '--tag', 'a:b:7'], env)).toMatchObject({
    port: 1,
    databases: ['sqlite:a', 'sqlite:b'],
    tags: [
      { name: 'order', step: 5 },
      { name: 'a:b', step: 7 },
    ],
  })
  expect(read(['--port', '2'], env)).toMatchObject({ port: 2, tags: [{ name: 'x', step: 1000 }] })
})

test('one source of worker ids, in range', () => {
  expect(read(['--zookeeper', 'zk:2181']).registry).toEqual({ kind: 'zookeeper', servers: 'zk:2181' })
  expect(read(['--worker-id', '0']).registry).toEqual({ kind: 'static', workerId: 0 })
  expect(() => read(['--zookeeper', 'zk', '--etcd', 'e'])).toThrow('give only one of')
  for (const workerId of ['1024', '-1', 'x', '']) {
    expect(() => read([`--worker-id=${workerId}`])).toThrow('--worker-id')
  }
})

test('the address in the registry is what was advertised, or the HTTP address', () => {
  expect(read(['--advertise', '10.0.0.7:80']).address(8070)).toEqual({ ip: '10.0.0.7', port: 80 })
  expect(read([]).address(8070)).toEqual({ ip: '127.0.0.1', port: 8070 })
  expect(read(['--host', '0.0.0.0']).address(8070).ip).not.toBe('0.0.0.0')
  expect(() => read(['--advertise', 'here'])).toThrow('--advertise')
})
