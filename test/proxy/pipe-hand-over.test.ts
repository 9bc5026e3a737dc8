import { connect } from 'node:net'
import { encodeCommand } from '@firebreak/core/resp'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ProxyStage } from './proxy-stage.ts'

let stage: ProxyStage

beforeAll(async () => {
  stage = await ProxyStage.open()
})
afterAll(() => stage.close())
afterEach(() => stage.clear())

const packet = (text: string) => Buffer.concat(text.split('; ').map((command) => encodeCommand(command.split(' '))))

/** All that a peer answers until it closes. */
function answersOf(port: number, bytes: Buffer): Promise<string> {
  const socket = connect(port)
  stage.onClear(() => socket.destroy())
  let text = ''
  socket.on('data', (chunk) => (text += chunk.toString('latin1')))
  socket.on('error', () => {})
  socket.write(bytes)
  return new Promise((resolve) => socket.on('close', () => resolve(text)))
}

// SUBSCRIBE within a transaction makes the client's connection a pipe, which is known with the server's answer only.
const intoPipe = 'MULTI; SUBSCRIBE c; EXEC'

describe.each(['net', 'raw'] as const)('over %s', (transport) => {
  test.each([
    ['a command of the proxy', packet(`${intoPipe}; FIREBREAK HELP; PING; QUIT`)],
    ['one behind the subscription', packet(`${intoPipe}; UNSUBSCRIBE; FIREBREAK HELP; PING; QUIT`)],
    ['what is no request', Buffer.concat([packet(`${intoPipe}; PING`), Buffer.from('*x\r\n')])],
  ])('%s that comes with what makes a pipe is answered as by Redis', async (_name, bytes) => {
    const proxy = await stage.start({ transport })
    expect(await answersOf(proxy.port, bytes)).toBe(await answersOf(stage.server.port, bytes))
  })

  test('credentials that come with what makes a pipe are answered', async () => {
    const proxy = await stage.start({ transport, users: [{ name: 'app', password: 'pw' }] })
    const client = await stage.client(proxy)
    client.write(packet(`AUTH app pw; ${intoPipe}; UNSUBSCRIBE; AUTH app other; PING`))
    for (let count = 0; count < 4; count++) await client.next()
    expect(await client.next()).toMatch(/^\*3\r\n\$11\r\nunsubscribe/)
    expect(await client.next()).toMatch(/^-/)
    expect(await client.next()).toBe('+PONG\r\n')
  })

  test('a command of the proxy is answered in its turn where no pipe comes of it', async () => {
    const proxy = await stage.start({ transport })
    const client = await stage.client(proxy)
    client.write(packet('WATCH a; MULTI; EXEC; FIREBREAK HELP; ECHO a'))
    const replies: string[] = []
    for (let count = 0; count < 5; count++) replies.push(await client.next())
    expect(replies[2]).toBe('*0\r\n')
    expect(replies[3]).toContain('FIREBREAK')
    expect(replies[4]).toBe('$1\r\na\r\n')
  })
})
