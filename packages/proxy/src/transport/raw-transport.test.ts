import dns from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'
import { createServer, type Server } from 'node:net'
import { freePort } from '@firebreak/testkit'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { NetTransport, netTransports } from './net-transport.ts'
import { rawTransports } from './raw-transport.ts'
import type { Transport } from './transport.ts'

/** Lets the resolver answer every name with these addresses. A module mock would not reach a module loaded before. */
function resolveTo(addresses: { address: string; family: number }[]): void {
  const lookup = (_: string, __: object, callback: (error: null, found: unknown) => void) => {
    setImmediate(callback, null, addresses)
  }
  vi.spyOn(dns, 'lookup').mockImplementation(lookup as never)
  syncBuiltinESMExports()
}

const servers: Server[] = []
/** Echoes the bytes it receives. */
async function echo(host: string, port = 0): Promise<number> {
  const server = createServer((socket) => socket.on('error', () => {}).pipe(socket))
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(port, host, resolve))
  return (server.address() as { port: number }).port
}

function resolveAsEver(): void {
  vi.restoreAllMocks()
  syncBuiltinESMExports()
}

const both = [
  { address: '::1', family: 6 },
  { address: '127.0.0.1', family: 4 },
]

afterEach(() => {
  resolveAsEver()
  for (const server of servers.splice(0)) server.close()
})

/** Connects and sends a word; returns the echoed word and the transport, or the error. */
function ask(host: string, port: number, kind = rawTransports!) {
  return new Promise<{ said: string; transport: Transport } | { error: Error | undefined }>((resolve) => {
    const transport = kind.connect(
      { host, port },
      {
        onData(bytes, length) {
          resolve({ said: bytes.toString('latin1', 0, length), transport })
          transport.destroy()
        },
        onDrain() {},
        onClose: (error) => resolve({ error }),
      },
      () => transport.write(Buffer.from('ping')),
    )
  })
}

describe('a raw transport', () => {
  test.each([
    ['an IPv4 address', '127.0.0.1', '127.0.0.1'],
    ['an IPv6 address', '::1', '::1'],
    ['a name', '127.0.0.1', 'localhost'],
  ])('connects to %s over a raw handle', async (_, listens, host) => {
    const found = await ask(host, await echo(listens))
    expect(found).toMatchObject({ said: 'ping' })
    expect((found as { transport: Transport }).transport).not.toBeInstanceOf(NetTransport)
  })

  test('tries the next address of a name if one refuses', async () => {
    const port = await echo('127.0.0.1')
    resolveTo(both)
    expect(await ask('redis.internal', port)).toMatchObject({ said: 'ping' })
  })

  test('reports the first address if none answers, and the name if it has no address', async () => {
    const port = await freePort()
    resolveTo(both)
    expect(await ask('redis.internal', port)).toMatchObject({
      error: { code: 'ECONNREFUSED', message: `connect ECONNREFUSED [::1]:${port}` },
    })
    resolveAsEver()
    const public_ = (await ask('nobody.invalid', port, netTransports)) as { error: NodeJS.ErrnoException }
    const raw = (await ask('nobody.invalid', port)) as { error: NodeJS.ErrnoException }
    expect([raw.error.code, raw.error.message]).toEqual([public_.error.code, public_.error.message])
  })

  test.each(['destroy', 'end', 'finish'] as const)('can %s before it is connected, and closes once', async (how) => {
    const port = await echo('127.0.0.1')
    const seen: string[] = []
    for (const host of ['127.0.0.1', 'localhost']) {
      await new Promise<void>((resolve) => {
        const transport = rawTransports!.connect(
          { host, port },
          { onData() {}, onDrain() {}, onClose: (error) => resolve(void seen.push(`closed ${error}`)) },
          () => seen.push('connected'),
        )
        expect([transport.write(Buffer.from('early')), transport.peer, transport.queuedBytes]).toEqual([true, '', 0])
        transport[how]()
      })
    }
    // A pending connection would have completed first.
    expect(await ask('127.0.0.1', port)).toMatchObject({ said: 'ping' })
    expect(seen).toEqual(['closed undefined', 'closed undefined'])
  })
})
