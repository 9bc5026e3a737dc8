import { systemRuntime } from '@firebreak/core'
import { expect, test } from 'vitest'
import { chooseTransport } from './choose-transport.ts'
import { probeRawHandles, type RawHandles, rawHandles } from './probe-raw.ts'
import type { Transport, TransportOwner } from './transport.ts'

interface Fault {
  readonly owner?: (owner: TransportOwner) => Partial<TransportOwner>
  readonly transport?: (transport: Transport) => Partial<Transport>
  readonly isSilent?: boolean
}

/** An object with some of its members overridden. */
function over<Kind extends object>(original: Kind, changed: Partial<Kind> = {}): Kind {
  return new Proxy(original, {
    get(_, name) {
      const value = Reflect.get(name in changed ? changed : original, name)
      return typeof value === 'function' ? value.bind(name in changed ? changed : original) : value
    },
  })
}

/** This Node's handles, except for what a fault changes on the connecting side. */
function broken({ owner: ownerOf, transport: transportOf, isSilent = false }: Fault): RawHandles {
  return {
    listen: rawHandles.listen,
    transports: {
      connect(target, owner, onConnect) {
        const told = over(owner, ownerOf?.(owner))
        const transport = rawHandles.transports!.connect(target, told, isSilent ? () => {} : onConnect)
        return over(transport, transportOf?.(transport))
      },
    },
  }
}

test('the raw handles of this Node work', async () => {
  expect(await probeRawHandles(systemRuntime)).toBeUndefined()
  expect(await probeRawHandles(systemRuntime, broken({}))).toBeUndefined()
})

test.concurrent.each<[string, Fault, RegExp]>([
  [
    'bytes are changed',
    {
      owner: (owner) => ({
        onData(bytes, length) {
          bytes[0]! ^= 1
          owner.onData(bytes, length)
        },
      }),
    },
    /bytes received differ/,
  ],
  [
    'a piece is lost',
    { transport: (to) => ({ write: (bytes) => to.write(bytes.subarray(0, 1000)) }) },
    /not counted|had not/,
  ],
  ['what has not left is not counted', { transport: () => ({ queuedBytes: 0 }) }, /unsent bytes are not counted/],
  ['an address is another', { transport: () => ({ peer: '127.0.0.1:1' }) }, /address of a peer/],
  ['a drain is not told', { owner: () => ({ onDrain() {} }) }, /waiting for what a peer had not read/],
  ['an end is not sent', { transport: () => ({ finish() {} }) }, /waiting for the end of one side/],
  ['a connection is not told', { isSilent: true }, /waiting for a connection/],
  ['an end is not told', { owner: () => ({ onEnd() {} }) }, /waiting for a close/],
  ['a refusal has no code', { owner: (owner) => ({ onClose: () => owner.onClose(new Error('no')) }) }, /closed port/],
])('handles are refused if %s', async (_, fault, reason) => {
  expect(await probeRawHandles(systemRuntime, broken(fault))).toMatch(reason)
})

test('public sockets are used if requested, or if raw handles are missing or broken, which is reported', async () => {
  const told: unknown[] = []
  const logger = { info: (data: object) => told.push(data), warn: () => {} }
  const missing: RawHandles = { ...rawHandles, transports: undefined }
  const choose = (transport: 'auto' | 'net' | 'raw', handles?: RawHandles, more = {}) =>
    chooseTransport({ transport, logger, ...more } as never, systemRuntime, handles)
  expect([await choose('auto'), await choose('raw'), await choose('net')]).toEqual(['raw', 'raw', 'net'])
  expect(await choose('auto', undefined, { path: 'proxy.sock' })).toBe('net')
  expect([await choose('raw', missing), told]).toEqual(['net', []])
  expect(await choose('auto', missing)).toBe('net')
  expect(await choose('auto', broken({ transport: () => ({ peer: '' }) }))).toBe('net')
  expect(told).toEqual([
    { reason: 'this Node version does not have them' },
    { reason: 'the address of a peer is wrong' },
  ])
})
