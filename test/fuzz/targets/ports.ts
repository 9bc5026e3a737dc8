import { connect } from 'node:net'
import { encodeJsonFrame } from '@firebreak/core'
import { encodeCommand } from '@firebreak/core/resp'
import { type Hub, type IdsServer, startHub, startIdsServer } from '@firebreak/hub'
import { SegmentIds, SnowflakeNode, sqliteSegmentStore } from '@firebreak/ids'
import { type FuzzTarget, LawBroken } from '../target.ts'

/** A port that has not answered the last byte after this long has nothing more to say. */
const silenceMs = 30
/** A port that still has to answer may be busy. */
const patienceMs = 10_000
const mostAnswerBytes = 64 * 1024

/** The whole answer of a port to an input, until it closes or falls silent. */
function answered(port: number, input: Buffer, waitMs = silenceMs): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1', () => socket.end(input))
    socket.setTimeout(waitMs, () => socket.destroy())
    socket.on('data', (chunk) => {
      answer += chunk.toString('latin1')
      if (answer.length > mostAnswerBytes) socket.destroy()
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // It may close while more input follows, but it must not disappear.
      if (error.code === 'ECONNREFUSED') reject(new LawBroken('the port is closed'))
    })
    socket.on('close', () => resolve(answer))
  })
}

async function mustNotFail(port: number, input: Buffer): Promise<void> {
  const answer = await answered(port, input)
  const [failed] = /^HTTP\/1\.1 5(?!03)\d\d[\s\S]{0,400}/m.exec(answer) ?? []
  if (failed !== undefined) throw new LawBroken(`the port failed: ${failed.replace(/\s+/g, ' ')}`)
}

const lines = (...all: string[]) => Buffer.from(`${all.join('\r\n')}\r\n\r\n`, 'latin1')
const httpWords = [
  '\r\n',
  '\r\n\r\n',
  ': ',
  '%00',
  '%ff',
  '?count=',
  'Host: 127.0.0.1',
  'Origin: http://127.0.0.1',
  'Sec-Fetch-Site: cross-site',
  'Authorization: Bearer ',
  'Cookie: firebreak-session=',
  'Firebreak-Csrf: ',
  'Transfer-Encoding: chunked',
  'Content-Length: 4',
  'Expect: 100-continue',
  'Connection: close',
  'HTTP/1.0',
  'X-Forwarded-User: ',
]

let hub: Hub | undefined

const upgrade = (...more: string[]) =>
  lines(
    'GET /v1/sensor HTTP/1.1',
    'Host: 127.0.0.1',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ...more,
  )

/** A masked binary frame of a WebSocket. */
function masked(payload: Uint8Array, opcode = 2): Buffer {
  const mask = [1, 2, 3, 4]
  const head = payload.length < 126 ? [payload.length | 0x80] : [126 | 0x80, payload.length >> 8, payload.length & 255]
  return Buffer.from([0x80 | opcode, ...head, ...mask, ...payload.map((byte, at) => byte ^ mask[at % 4]!)])
}

const hello = encodeJsonFrame('hello', 1, {
  ...{ serviceId: 'shop', hostId: 'host-1', instanceId: 'i1', agent: 'test/1', redisClusterIds: ['main'] },
  ...{ epoch: '', version: 0, sentAt: 1_700_000_000_000 },
})

/** A hub's port as bytes: heads with what decides who may do what, upgrades, and frames after them. */
export const hubPortTarget: FuzzTarget = {
  name: 'hub-port',
  batch: 16,
  words: httpWords,
  seeds: () => [
    lines('GET /v1/keys HTTP/1.1', 'Host: localhost', 'Authorization: Bearer something', 'Connection: close'),
    lines('GET /v1/session HTTP/1.1', 'Host: localhost', 'Cookie: firebreak-session=a.b.c; x=y', 'Connection: close'),
    lines('DELETE /v1/rules/a HTTP/1.1', 'Host: [::1]:7070', 'Origin: http://[::1]:7070', 'Firebreak-Csrf: abc'),
    lines(
      'GET / HTTP/1.1',
      'Host: localhost',
      'Sec-Fetch-Mode: navigate',
      'Sec-Fetch-Dest: document',
      'Connection: close',
    ),
    Buffer.concat([
      lines('POST /v1/reports HTTP/1.1', 'Host: localhost', 'Content-Type: text/plain', 'Transfer-Encoding: chunked'),
      Buffer.from('4\r\n# 1,\r\n0\r\n\r\n'),
    ]),
    Buffer.concat([upgrade(), masked(hello), masked(Buffer.from('abc'), 9), masked(Buffer.from([3, 232]), 8)]),
    upgrade('Sec-WebSocket-Protocol: firebreak-token.c2VjcmV0'),
    upgrade('Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits'),
  ],
  async open() {
    hub = await startHub({ logLevel: 'silent' })
  },
  close: async () => hub?.close(),
  run: (input) => mustNotFail(hub!.port, input),
}

let ids: IdsServer | undefined
async function openIds(): Promise<void> {
  const segments = await SegmentIds.start({ stores: [sqliteSegmentStore(':memory:')] })
  await segments.addTag('orders', { step: 1000 })
  const startSnowflake = () => SnowflakeNode.start({ workerId: 9 })
  ids = await startIdsServer({ segments, respPort: 0, startSnowflake })
}

/** Heads as they come to a port for ids over HTTP. */
export const idsHttpTarget: FuzzTarget = {
  name: 'ids-http',
  batch: 16,
  words: [...httpWords, '/api/segment/get/', '/api/snowflake/get/', '/api/snowflake/decode/'],
  seeds: () =>
    [
      '/api/segment/get/orders',
      '/api/segment/get/orders?count=5',
      '/api/snowflake/get/orders?count=2',
      '/api/snowflake/decode/4611686018427387904',
      '/api/ids/status',
      '/api/ids/buffers',
      '/readyz',
    ].map((path) => lines(`GET ${path} HTTP/1.1`, 'Host: localhost', 'Connection: close')),
  open: openIds,
  close: async () => ids?.close(),
  run: (input) => mustNotFail(ids!.port, input),
}

/** Commands as they come to a port for ids over RESP; afterwards an honest client is still answered. */
export const idsRespTarget: FuzzTarget = {
  name: 'ids-resp',
  batch: 16,
  words: [
    '\r\n',
    '*1\r\n',
    '*2\r\n',
    '$4\r\n',
    '$0\r\n\r\n',
    'INCR',
    'LPOP',
    'HELLO',
    'AUTH',
    '99999999',
    '-1',
    'POST / HTTP/1.1',
  ],
  seeds: () => [
    encodeCommand(['INCR', 'orders']),
    Buffer.concat([encodeCommand(['LPOP', 'orders', '3']), encodeCommand(['LPOP', 'snowflake', '2'])]),
    encodeCommand(['HELLO', '3', 'AUTH', 'default', 'secret', 'SETNAME', 'x']),
    Buffer.concat([encodeCommand(['AUTH', 'guess']), encodeCommand(['SELECT', '0']), encodeCommand(['CLIENT', 'ID'])]),
    Buffer.from('PING\r\nINFO\r\necho "a b\\x41"\r\nQUIT\r\n'),
    Buffer.from('POST / HTTP/1.1\r\nHost: x\r\n\r\nINCR orders\r\n'),
  ],
  open: openIds,
  close: async () => ids?.close(),
  async run(input) {
    const reply = await answered(ids!.respPort!, input)
    if (reply !== '' && !/^[-+:$*%_,#(=~>!|]/.test(reply)) throw new LawBroken(`no reply: ${reply.slice(0, 80)}`)
    const echo = await answered(ids!.respPort!, Buffer.from('ECHO honest\r\nQUIT\r\n'), patienceMs)
    if (echo !== '$6\r\nhonest\r\n+OK\r\n') throw new LawBroken(`an honest client was answered ${echo.slice(0, 80)}`)
  },
}
