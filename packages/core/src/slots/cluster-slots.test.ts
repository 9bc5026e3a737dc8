import { expect, test } from 'vitest'
import { MapReply, type RespValue } from '../resp/value.ts'
import { readClusterSlots } from './cluster-slots.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const hostsOf = (...nodes: RespValue[]) => {
  const [range] = readClusterSlots([[0, 5, ...nodes]], 'asked')
  return range === undefined ? undefined : [range.master, ...range.replicas].map(({ host, port }) => `${host} ${port}`)
}

test('a master and its replicas are read, by IPv4, IPv6 and name, as text or as bytes', () => {
  expect(
    readClusterSlots(
      [
        [0, 99, ['10.0.0.1', 7000, 'id'], [bytes('fe80::1'), 7001, 'id', []]],
        [100, 16383, [bytes('node-2.example'), 7002, 'id', [bytes('ip'), bytes('10.0.0.2')]]],
      ],
      'asked',
    ),
  ).toEqual([
    { first: 0, last: 99, master: { host: '10.0.0.1', port: 7000 }, replicas: [{ host: 'fe80::1', port: 7001 }] },
    { first: 100, last: 16383, master: { host: 'node-2.example', port: 7002 }, replicas: [] },
  ])
  expect(hostsOf(['[::1]', 7000])).toEqual(['::1 7000'])
})

test('a node that does not know its host is at the address that was asked; one without a name, at its IP address', () => {
  expect(hostsOf(['', 7000], [null, 7001, 'id', [bytes('ip'), bytes('10.0.0.9')]])).toEqual([
    'asked 7000',
    'asked 7001',
  ])
  expect(hostsOf(['?', 7000, 'id', [bytes('ip'), bytes('10.0.0.3')]], ['?', 7001])).toEqual([
    '10.0.0.3 7000',
    'asked 7001',
  ])
  expect(hostsOf(['?', 7000, 'id', new MapReply(['ip', '10.0.0.4'])])).toEqual(['10.0.0.4 7000'])
})

test('what cannot be read is left out', () => {
  expect(readClusterSlots(null, 'asked')).toEqual([])
  expect(readClusterSlots('ERR', 'asked')).toEqual([])
  expect(hostsOf()).toBeUndefined()
  expect(hostsOf(['a', 0])).toBeUndefined()
  expect(hostsOf(['a', 7000], ['b', 'x'], null)).toEqual(['a 7000'])
  const node = ['a', 7000]
  expect(readClusterSlots([[5, 4, node], [0, 16384, node], ['x', 1, node], null, [7, 7, node]], 'asked')).toMatchObject(
    [{ first: 7, last: 7 }],
  )
})
