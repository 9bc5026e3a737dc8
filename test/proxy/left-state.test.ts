import { connect } from 'node:net'
import { encodeCommand } from '@firebreak/core/resp'
import {
  answersRefusedAuth,
  type RedisServer,
  redisKind,
  scale,
  startRedis,
  TestHub,
  waitFor,
} from '@firebreak/testkit'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { ProxyStage } from './proxy-stage.ts'

let stage: ProxyStage
let twin: RedisServer

beforeAll(async () => {
  stage = await ProxyStage.open()
  twin = await startRedis()
  for (const { cli } of [stage.server, twin]) {
    await cli('ACL', 'SETUSER', 'alice', 'on', '>pass', '~*', '&*', '+@all')
    await cli('ACL', 'SETUSER', 'bob', 'on', '>pass', '~b*', '&*', '+@all', '-select')
  }
})
afterEach(() => stage.clear())
afterAll(async () => {
  await stage.close()
  await twin.stop()
})

/**
 * Commands that leave something behind on a connection, or show what was left. One channel only: in which order Redis
 * leaves several is chance.
 */
const commands = `
SET a 1|GET a|INCR n|LPUSH l x|LLEN l|MGET a b n|SET b 2|DEL a b n l|EVAL return(1) 0|BLPOP l 0.01|SELECT 0|SELECT 3|SELECT 99
MULTI|EXEC|DISCARD|WATCH a|WATCH n b|UNWATCH|MULTI|EXEC|SUBSCRIBE c|SUBSCRIBE c c|PSUBSCRIBE p*|UNSUBSCRIBE|UNSUBSCRIBE c|PUNSUBSCRIBE
SSUBSCRIBE s|SUNSUBSCRIBE|PUBLISH c hello|CLIENT TRACKING on|CLIENT TRACKING on OPTIN|CLIENT TRACKING off
CLIENT CACHING yes|CLIENT TRACKINGINFO|CLIENT GETREDIR|CLIENT NO-EVICT on|CLIENT NO-EVICT off|CLIENT REPLY skip|CLIENT REPLY off|CLIENT REPLY on
CLIENT SETNAME one|CLIENT SETNAME two|CLIENT GETNAME|HELLO 2|HELLO 3|HELLO 3 SETNAME three|HELLO 3 AUTH alice pass|HELLO 2 AUTH bob wrong
HELLO 3 AUTH bob pass SETNAME four|HELLO 3 SETNAME bad\u0000name|HELLO 9|HELLO 3 NONSENSE|AUTH alice pass|AUTH bob pass|AUTH bob wrong
HELLO 3 AUTH alice pass NONSENSE|HELLO 2 SETNAME five AUTH bob wrong|HELLO 2 AUTH bob pass SETNAME bad\u0000name|MULTI x|DISCARD x|EXEC x
AUTH default any|RESET|NOSUCH command|CLIENT NOSUCH|PING|PING word|ECHO word|ACL WHOAMI|READONLY|WAIT 0 0|OBJECT ENCODING a|GETRANGE large 0 3|GET large`
  .trim()
  .split(/[|\n]/)
  .filter((line) => answersRefusedAuth(redisKind()) || !line.includes('wrong'))
  .map((line) => line.split(' ').map((word) => word.replace('\u0000', ' ')))

/** Sends all in one piece and behind it what leaves any state (the answer to one may be skipped); gives what came. */
async function talk(port: number, sequence: readonly string[][]): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  let isClosed = false
  socket.on('data', (chunk) => (text += chunk.toString('latin1')))
  socket.on('error', () => {})
  socket.on('close', () => (isClosed = true))
  socket.write(
    Buffer.concat([...sequence, ['RESET'], ['RESET'], ['ECHO', 'the end']].map((words) => encodeCommand(words))),
  )
  await waitFor(() => isClosed || text.endsWith('the end\r\n'), {
    everyMs: 1,
    what: () => `the end of ${JSON.stringify(sequence)}, have ${JSON.stringify(text.slice(-300))}`,
  })
  socket.destroy()
  return text.replace(/(\$2\r\nid\r\n):\d+/g, '$1:ID')
}

const shown = ['flags', 'db', 'sub', 'psub', 'ssub', 'multi', 'watch', 'redir', 'resp', 'name', 'user']
/** What CLIENT INFO says about a connection's state. */
function stateOf(info: string): string[] {
  return info.split(/\s/).filter((field) => shown.includes(field.split('=')[0]!))
}

test.each([
  ['over public sockets', 'net', false],
  ['over raw handles', 'raw', false],
  ['with hot keys', 'net', true],
] as const)(
  'whatever a client does, it is answered as by Redis and leaves nothing behind: %s',
  async (_, transport, isHot) => {
    for (const { cli } of [stage.server, twin]) await cli('SET', 'large', 'x'.repeat(100_000))
    const hub = isHot ? await TestHub.start() : undefined
    stage.onClear(() => hub?.kill())
    const shield = hub && { hubs: [hub.url], redisClusterId: 'main', serviceId: 'test', tableFile: false as const }
    const proxy = await stage.start({ transport, ...(shield && { shield }) })
    if (hub !== undefined) {
      hub.heat('main', ['a', 'b', 'n', 'l', 'large', 'marker'])
      const client = await stage.client(proxy)
      await waitFor(async () => {
        await client.ask('GET', 'marker')
        return (await client.ask('FIREBREAK', 'PEEK', 'marker')) !== '*0\r\n'
      })
    }
    const fresh = stateOf(await talk(twin.port, [['CLIENT', 'INFO']]))
    expect(fresh).toContain('db=0')
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...commands), { minLength: 1, maxLength: 14, size: 'max' }),
        async (sequence) => {
          const [expected, actual] = await Promise.all([talk(twin.port, sequence), talk(proxy.port, sequence)])
          expect(actual).toBe(expected)
          expect(stateOf(await talk(proxy.port, [['CLIENT', 'INFO']]))).toEqual(fresh)
        },
      ),
      { numRuns: scale(80, 2000) },
    )
  },
)

test.each(['net', 'raw'] as const)(
  'what looks like a message to a RESP3 subscriber is a reply: %s',
  async (transport) => {
    const proxy = await stage.start({ transport })
    const sequence = `
HELLO 3|SUBSCRIBE c|HSET e type message|HMGET e type|SELECT 0|PING|RPUSH m message a b|LRANGE m 0 -1|CLIENT GETNAME
EVAL return({'unsubscribe','c',0}) 0|SUBSCRIBE d|MULTI|LRANGE m 0 -1|EXEC|UNSUBSCRIBE d|UNSUBSCRIBE c|DEL e m|PING`
      .trim()
      .split(/[|\n]/)
      .map((line) => line.split(' '))
    const [expected, actual] = await Promise.all([talk(twin.port, sequence), talk(proxy.port, sequence)])
    expect(actual).toBe(expected)
  },
)
