import { systemRuntime } from '@firebreak/core'
import { expect, test } from 'vitest'
import type { ConnectTarget, Transport, TransportKind } from '../transport/transport.ts'
import { findMode } from './find-mode.ts'
import { identityOf } from './identity.ts'

/** Transports to servers that give one reply to everything; a server without a reply closes the connection. */
function answering(replies: Record<number, string>): TransportKind {
  return {
    connect({ port }: ConnectTarget, owner, onConnect) {
      const reply = replies[port]
      setImmediate(() => (reply === undefined ? owner.onClose(undefined) : onConnect()))
      const transport: Partial<Transport> = {
        write(bytes) {
          const requests = bytes.toString('latin1').match(/\*\d+\r\n/g)!.length
          const all = Buffer.from(reply!.repeat(requests))
          setImmediate(() => owner.onData(all, all.length))
          return true
        },
        destroy() {},
      }
      return transport as Transport
    },
  }
}

const bulk = (text: string) => `$${text.length}\r\n${text}\r\n`
const place = (port: number): ConnectTarget => ({ host: '127.0.0.1', port })
const valkey = (mode: string) =>
  bulk(`# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\nserver_mode:${mode}\r\n`)
const redis = (mode: string) => bulk(`# Server\r\nredis_version:7.0.15\r\nredis_mode:${mode}\r\nos:Linux\r\n`)

test.each([
  ['Redis alone', redis('standalone'), 'single'],
  ['a Redis Cluster', redis('cluster'), 'cluster'],
  ['a Redis Sentinel', redis('sentinel'), 'sentinel'],
  ['Valkey alone', valkey('standalone'), 'single'],
  ['a Valkey Cluster', valkey('cluster'), 'cluster'],
  ['a Valkey Sentinel', valkey('sentinel'), 'sentinel'],
  ['a server that lets nobody ask', '-NOAUTH Authentication required.\r\n', 'single'],
])('%s is recognised by its INFO', async (_, reply, mode) => {
  const settings = { transports: answering({ 1: reply }), runtime: systemRuntime, connectWaitMs: 100 }
  expect(await findMode([place(1)], identityOf(undefined, undefined), settings)).toBe(mode)
})

test('if one address does not answer, the next is asked', async () => {
  const settings = { transports: answering({ 2: valkey('cluster') }), runtime: systemRuntime, connectWaitMs: 60 }
  expect(await findMode([place(1), place(2)], identityOf(undefined, undefined), settings)).toBe('cluster')
})
