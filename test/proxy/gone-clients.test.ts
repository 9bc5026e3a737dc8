import { type CommandArgument, encodeCommand } from '@firebreak/core/resp'
import type { FirebreakProxy } from '@firebreak/proxy'
import { waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ProxyStage } from './proxy-stage.ts'
import { RawClient } from './raw-client.ts'

let stage: ProxyStage

beforeAll(async () => {
  stage = await ProxyStage.open()
})
afterAll(() => stage.close())
afterEach(() => stage.clear())

const packet = (...commands: CommandArgument[][]) => Buffer.concat(commands.map((command) => encodeCommand(command)))

async function blockedClients(): Promise<number> {
  return Number(/blocked_clients:(\d+)/.exec(await stage.direct.ask('INFO', 'clients'))![1])
}

/** The requests behind which a proxy has to wait for the reply of the one before. */
const waits: [string, CommandArgument[]][] = [
  ['CLIENT SETNAME', ['CLIENT', 'SETNAME', 'x']],
  ['RESET', ['RESET']],
  ['SELECT', ['SELECT', '1']],
  ['HELLO', ['HELLO', '3']],
  ['CLIENT REPLY', ['CLIENT', 'REPLY', 'ON']],
]

describe.each([
  ['Redis itself', undefined],
  ['a proxy over net', { transport: 'net' }],
  ['a proxy over raw', { transport: 'raw' }],
] as const)('behind %s', (_, options) => {
  let port: number
  let proxy: FirebreakProxy | undefined

  beforeEach(async () => {
    proxy = options === undefined ? undefined : await stage.start(options)
    port = proxy?.port ?? stage.server.port
  })

  async function connect(): Promise<RawClient> {
    const client = await RawClient.connect(port)
    stage.onClear(() => client.close())
    return client
  }

  async function expectNothingTaken(key: string): Promise<void> {
    await waitFor(async () => (await blockedClients()) === 0)
    await stage.direct.ask('RPUSH', key, 'v')
    expect(await stage.direct.ask('LLEN', key)).toBe(':1\r\n')
    await stage.direct.ask('DEL', key)
  }

  test.each(waits)(
    'a client that goes while %s waits behind BLPOP takes no element with it',
    async (_name, waiting) => {
      const client = await connect()
      client.write(packet(['BLPOP', 'k', '0'], waiting))
      await waitFor(async () => (await blockedClients()) === 1)
      client.send('PING')
      client.socket.end()
      await expectNothingTaken('k')
    },
  )

  test('a client that is reset while a request waits behind BLPOP takes no element with it', async () => {
    const client = await connect()
    client.write(packet(['BLPOP', 'k', '0'], ['SELECT', '1']))
    await waitFor(async () => (await blockedClients()) === 1)
    client.send('PING')
    client.socket.resetAndDestroy()
    await expectNothingTaken('k')
  })

  test('a client that goes behind more requests than may be on their way takes no element with it', async () => {
    const client = await connect()
    client.send('BLPOP', 'k', '0')
    await waitFor(async () => (await blockedClients()) === 1)
    client.write(packet(...Array.from({ length: 70_000 }, () => ['PING'])))
    client.socket.end()
    await expectNothingTaken('k')
  })

  test('of many such clients none stays', async () => {
    const clients = await Promise.all(Array.from({ length: 20 }, () => connect()))
    for (const client of clients) client.write(packet(['BLPOP', 'k', '0'], ['SELECT', '1']))
    await waitFor(async () => (await blockedClients()) === clients.length)
    for (const client of clients) {
      client.send('PING')
      client.socket.end()
    }
    await expectNothingTaken('k')
    if (proxy === undefined) return
    const other = await connect()
    const info = await other.ask('FIREBREAK', 'INFO')
    expect(info).toMatch(/firebreak_clients:1\r\n/)
    expect(info).toMatch(/firebreak_upstream_owned:0\r\n/)
  })
})
