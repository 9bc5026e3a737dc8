import { expect, test } from 'vitest'
import { ids } from './ids.ts'
import { flagNames, parseIdsFlags } from './ids-flags.ts'

test('the defaults: loopback, an SQLite file, no snowflakes', () => {
  expect(parseIdsFlags([], {})).toMatchObject({
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
  expect(parseIdsFlags(['--tag', 'order:5', '--tag', 'a:b:7'], env)).toMatchObject({
    port: 1,
    databases: ['sqlite:a', 'sqlite:b'],
    tags: [
      { name: 'order', step: 5 },
      { name: 'a:b', step: 7 },
    ],
  })
  expect(parseIdsFlags(['--port', '2'], env)).toMatchObject({ port: 2, tags: [{ name: 'x', step: 1000 }] })
})

test('one source of worker ids, in range', () => {
  expect(parseIdsFlags(['--zookeeper', 'zk:2181'], {}).registry).toEqual({ kind: 'zookeeper', servers: 'zk:2181' })
  expect(parseIdsFlags(['--worker-id', '0'], {}).registry).toEqual({ kind: 'static', workerId: 0 })
  expect(() => parseIdsFlags(['--zookeeper', 'zk', '--etcd', 'e'], {})).toThrow('give one of')
  for (const workerId of ['1024', '-1', 'x', '']) {
    expect(() => parseIdsFlags([`--worker-id=${workerId}`], {})).toThrow('--worker-id')
  }
})

test('the address in the registry is what was advertised, or where HTTP listens', () => {
  expect(parseIdsFlags(['--advertise', '10.0.0.7:80'], {}).address(8070)).toEqual({ ip: '10.0.0.7', port: 80 })
  expect(parseIdsFlags([], {}).address(8070)).toEqual({ ip: '127.0.0.1', port: 8070 })
  expect(parseIdsFlags(['--host', '0.0.0.0'], {}).address(8070).ip).not.toBe('0.0.0.0')
  expect(() => parseIdsFlags(['--advertise', 'here'], {})).toThrow('--advertise')
})

test('the help has every flag and its environment variable', () => {
  for (const name of flagNames) {
    expect(ids.help).toContain(`--${name} `)
    expect(ids.help).toContain(`FIREBREAK_IDS_${name.toUpperCase().replaceAll('-', '_')}`)
  }
})
