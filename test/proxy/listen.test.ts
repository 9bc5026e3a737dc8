import { existsSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { startProxy } from '@firebreak/proxy'
import { freePort, startRedis, startSource, temporaryFolder, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ProxyStage } from './proxy-stage.ts'

let stage: ProxyStage
beforeAll(async () => {
  stage = await ProxyStage.open()
})
afterAll(() => stage.close())
afterEach(() => stage.clear())

function askAt(path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(path, () => socket.write('PING\r\n'))
    socket.once('error', reject)
    socket.once('data', (bytes) => {
      resolve(String(bytes))
      socket.destroy()
    })
  })
}

describe('a unix socket', () => {
  test('that a killed proxy has left does not keep the next one from listening', async () => {
    const path = join(temporaryFolder('proxy'), 'proxy.sock')
    const options = JSON.stringify({ upstream: stage.server.url, path })
    const child = startSource(new URL('./proxy-process.ts', import.meta.url), [options])
    await child.printed(/listening/)
    expect(await askAt(path)).toBe('+PONG\r\n')
    child.signal('SIGKILL')
    await child.exited
    expect(existsSync(path)).toBe(true)
    await stage.start({ path })
    expect(await askAt(path)).toBe('+PONG\r\n')
  })

  test('that somebody serves is left alone', async () => {
    const path = join(temporaryFolder('proxy'), 'proxy.sock')
    await stage.start({ path })
    await expect(startProxy({ upstream: stage.server.url, path })).rejects.toThrow(/cannot listen: .*EADDRINUSE/)
    expect(await askAt(path)).toBe('+PONG\r\n')
  })

  test('is not made in the place of a file that is none', async () => {
    const path = join(temporaryFolder('proxy'), 'notes.txt')
    writeFileSync(path, 'notes')
    await expect(startProxy({ upstream: stage.server.url, path })).rejects.toThrow(/cannot listen: .*EADDRINUSE/)
    expect(existsSync(path)).toBe(true)
  })
})

test('a proxy starts while no Redis can be reached: its process does not end before it listens', async () => {
  const upstream = `127.0.0.1:${await freePort()},127.0.0.1:${await freePort()}`
  const options = JSON.stringify({ upstream, port: 0, connectWaitMs: 300 })
  const child = startSource(new URL('./proxy-process.ts', import.meta.url), [options])
  stage.onClear(() => child.stop())
  const [, port] = await child.printed(/listening (\d+)/)
  const redis = await stage.client({ port: Number(port) })
  expect(await redis.ask('GET', 'k')).toContain('-ERR Firebreak: no connection to Redis')
})

describe.each(['net', 'raw'] as const)('over %s', (transport) => {
  test('a port that is taken is told by the name of the error', async () => {
    const { port } = await stage.start()
    const other = startProxy({ upstream: stage.server.url, port, transport })
    await expect(other).rejects.toThrow(new RegExp(`cannot listen: listen EADDRINUSE.* 127\\.0\\.0\\.1:${port}`))
  })

  test('an upstream may be given by a name and by an IPv6 address', async () => {
    const server = await startRedis({ args: ['--bind', '127.0.0.1', '::1'] })
    stage.onClear(() => server.stop())
    for (const host of ['localhost', '[::1]']) {
      const redis = await stage.client(await stage.start({ upstream: `redis://${host}:${server.port}`, transport }))
      expect(await redis.ask('SET', host, 'v')).toBe('+OK\r\n')
      expect(await redis.ask('GET', host)).toBe('$1\r\nv\r\n')
    }
    expect(await server.cli('DBSIZE')).toBe('2')
  })

  test('an upstream that refuses or cuts connections is told by the name of the error', async () => {
    const port = await freePort()
    const proxy = await stage.start({ upstream: `127.0.0.1:${port}`, mode: 'single', transport, connectWaitMs: 100 })
    const redis = await stage.client(proxy)
    expect(await redis.ask('GET', 'k')).toContain(`connect ECONNREFUSED 127.0.0.1:${port}`)
    const told: string[] = []
    const logger = { info: () => {}, warn: (_: object, message: string) => void told.push(message) }
    const cutting = createServer((socket) => socket.once('data', () => socket.resetAndDestroy()))
    await new Promise<void>((resolve) => cutting.listen(0, '127.0.0.1', resolve))
    stage.onClear(() => cutting.close())
    const { port: at } = cutting.address() as { port: number }
    await stage.start({ upstream: `127.0.0.1:${at}`, mode: 'single', transport, connectWaitMs: 100, logger })
    await waitFor(() => told.length > 0)
    expect(told[0]).toContain('(read ECONNRESET)')
  })
})

test.each([
  ['one thread', {}, 'raw'],
  ['two threads', { workers: 2 }, 'raw'],
  ['a proxy that is told to', { transport: 'net' }, 'net'],
] as const)('raw handles are the default where they are sound: %s', async (_, options, transport) => {
  const redis = await stage.client(await stage.start(options))
  expect(await redis.ask('FIREBREAK', 'INFO')).toContain(`firebreak_transport:${transport}\r\n`)
})
