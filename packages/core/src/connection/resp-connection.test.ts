import { FakeClock, memoryPipe } from '@firebreak/testkit'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { encodeReply } from '../resp/encode-reply.ts'
import { ReplyDecoder } from '../resp/reply-decoder.ts'
import { Double, ErrorReply, MapReply, PushReply, type RespValue, SetReply } from '../resp/value.ts'
import { greet } from './greeting.ts'
import { RespConnection, type RespConnectionOptions } from './resp-connection.ts'

const request = Buffer.from('x')

function connect(options: Partial<RespConnectionOptions> = {}) {
  const clock = new FakeClock()
  const pipe = memoryPipe()
  const closes: Error[] = []
  const connection = new RespConnection(pipe.open, {
    address: 'here:1',
    runtime: { clock, timers: clock },
    onClose: (error) => closes.push(error),
    ...options,
  })
  return { clock, pipe, connection, closes }
}

const { value } = fc.letrec<{ value: RespValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.string({ maxLength: 12 }).map((text) => text.replace(/[\r\n]/g, ' ')),
    fc.uint8Array({ maxLength: 40 }),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.double({ noNaN: true }).map((number) => new Double(number)),
    fc.constantFrom('WRONGTYPE no', 'ERR').map((text) => new ErrorReply(text)),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.array(tie('value'), { maxLength: 3 }).map((items) => new SetReply(items)),
    fc.array(fc.tuple(tie('value'), tie('value')), { maxLength: 2 }).map((pairs) => new MapReply(pairs.flat())),
  ),
}))
const push = fc.array(value, { maxLength: 3 }).map((items) => new PushReply(['invalidate', ...items]))

function decode(bytes: Uint8Array): RespValue[] {
  const decoder = new ReplyDecoder()
  decoder.feed(bytes)
  const values: RespValue[] = []
  for (let next = decoder.next(); next !== undefined; next = decoder.next()) values.push(next)
  return values
}

test('replies and pushes arrive in the order of their bytes, however these are split and wherever the stream ends', () => {
  const plan = fc.record({
    stream: fc.array(fc.oneof({ weight: 3, arbitrary: value }, { weight: 1, arbitrary: push }), { maxLength: 12 }),
    cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 12 }),
    sizes: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 }),
    extra: fc.nat(5),
    endsAt: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  fc.assert(
    fc.property(plan, ({ stream, cuts, sizes, extra, endsAt }) => {
      const bytes = Buffer.concat(stream.map((item) => encodeReply(item, 3)))
      const cutOff = bytes.subarray(0, Math.round(endsAt * bytes.length))
      const seen: RespValue[] = []
      const lost: string[] = []
      const order: string[] = []
      const { connection, pipe, closes } = connect({ onPush: (items) => seen.push(new PushReply(items)) })
      // Asks for more than will be answered, in sends of several requests each.
      let asked = 0
      const wanted = stream.filter((item) => !(item instanceof PushReply)).length + extra
      for (let send = 0; asked < wanted; send++) {
        const count = Math.min(sizes[send % sizes.length]!, wanted - asked)
        asked += count
        connection.send(request, count, (reply, index) => {
          order.push(`${send}.${index}`)
          if (reply === undefined) lost.push(`${send}.${index}`)
          else seen.push(...decode(reply))
        })
      }
      const places = [0, ...cuts.map((cut) => Math.round(cut * cutOff.length)), cutOff.length].sort((a, b) => a - b)
      for (let index = 1; index < places.length; index++) {
        // Each piece has its own memory, like a socket's chunks.
        pipe.say(Buffer.from(cutOff.subarray(places[index - 1], places[index])))
      }
      pipe.end()
      const whole = decode(cutOff)
      expect(seen).toEqual(whole)
      const answered = whole.filter((item) => !(item instanceof PushReply)).length
      expect(order).toHaveLength(wanted)
      expect(lost).toEqual(order.slice(answered))
      expect([...order].sort((a, b) => Number(a.split('.')[0]) - Number(b.split('.')[0]))).toEqual(order)
      expect(closes).toHaveLength(1)
    }),
    { numRuns: 400 },
  )
})

test('a lost connection fails all waiting requests, once, then notifies its owner, and fails later requests', () => {
  const { connection, pipe, closes } = connect()
  const replies: unknown[] = []
  connection.send(request, 2, (reply) => replies.push(reply?.length))
  connection.send(request, 1, (reply) => replies.push(reply?.length))
  pipe.say('+OK\r\n')
  connection.close()
  connection.close()
  connection.send(request, 1, (reply) => replies.push(reply?.length))
  expect(replies).toEqual([5, undefined, undefined, undefined])
  expect(closes).toMatchObject([{ code: 'FB_REDIS_CLOSED' }])
  expect(pipe.isClosed).toBe(true)
})

test('bytes that are not RESP, or a reply that nobody asked for, end the connection', () => {
  for (const text of ['?what\r\n', '+OK\r\n']) {
    const { pipe, closes } = connect()
    pipe.say(text)
    expect(closes).toMatchObject([{ code: 'FB_RESP_PROTOCOL' }])
    expect(pipe.isClosed).toBe(true)
  }
})

test('a reply proves that the server was alive when the request was sent', () => {
  const { connection, pipe, clock } = connect()
  const sentAt = clock.now()
  connection.send(request, 1, () => {})
  clock.advance(70)
  pipe.say('+PONG\r\n')
  expect([connection.answeredSentAt, connection.heardAt]).toEqual([sentAt, sentAt + 70])
})

test('silence while a reply is due ends the connection; arriving bytes, or no reply due, do not', () => {
  const { connection, pipe, clock, closes } = connect({ replyTimeoutMs: 100 })
  clock.advance(1000)
  connection.send(request, 2, () => {})
  clock.advance(90)
  pipe.say('$3\r\nab')
  clock.advance(90)
  pipe.say('c\r\n')
  clock.advance(90)
  expect(closes).toEqual([])
  clock.advance(20)
  expect(closes).toMatchObject([{ code: 'FB_REDIS_TIMEOUT', address: 'here:1' }])
  expect(clock.pending).toBe(0)
})

test('more waiting requests than allowed, or a reply longer than allowed, end the connection', () => {
  const full = connect({ maxWaiting: 2 })
  const replies: unknown[] = []
  for (let count = 0; count < 3; count++) full.connection.send(request, 1, (reply) => replies.push(reply))
  expect(replies).toEqual([undefined, undefined, undefined])
  expect(full.closes).toMatchObject([{ code: 'FB_REDIS_QUEUE_FULL' }])

  const long = connect({ maxReplyBytes: 10 })
  long.connection.send(request, 1, () => {})
  long.pipe.say('$100\r\n')
  long.pipe.say('0123456789')
  expect(long.closes).toMatchObject([{ code: 'FB_RESP_TOO_LARGE' }])
})

test('after a takeover bytes arrive unchanged, including the rest of the chunk after the last reply', () => {
  const { connection, pipe } = connect()
  const raw: string[] = []
  connection.send(request, 1, () =>
    connection.takeOver(Buffer.from('PSYNC'), (chunk) => raw.push(Buffer.from(chunk).toString())),
  )
  pipe.say('+OK\r\n+FULLRESYNC')
  pipe.say(' x 0\r\nREDIS')
  expect(raw).toEqual(['+FULLRESYNC', ' x 0\r\nREDIS'])
  expect(pipe.written).toBe('xPSYNC')
})

test('a greeting authenticates before it selects the database, and never continues as somebody else', () => {
  const { connection, pipe } = connect()
  const results: unknown[] = []
  greet(connection, { username: 'u', password: 'p', database: 3, version: 3 }, (result) => results.push(result))
  expect(pipe.written.match(/HELLO|AUTH|SELECT/g)).toEqual(['HELLO', 'AUTH', 'SELECT'])
  // A server before version 6: it expects AUTH in its old form, and did not refuse the database to this user.
  pipe.say("-ERR unknown command 'HELLO'\r\n-NOAUTH Authentication required.\r\n")
  expect(results).toEqual([])
  pipe.say('+OK\r\n+OK\r\n')
  expect(results).toEqual([{ kind: 'ready', version: 2, helloRefusal: "ERR unknown command 'HELLO'" }])

  const refused = connect()
  greet(refused.connection, { password: 'p', database: 3 }, (result) => results.push(result))
  refused.pipe.say('+OK\r\n-ERR DB index is out of range\r\n')
  expect(results[1]).toMatchObject({ kind: 'refused', command: 'SELECT', reply: { kind: 'ERR' } })

  const wrong = connect()
  greet(wrong.connection, { password: 'p', version: 3 }, (result) => results.push(result))
  wrong.pipe.say('-WRONGPASS invalid\r\n')
  expect(results[2]).toMatchObject({ kind: 'refused', command: 'HELLO', reply: { kind: 'WRONGPASS' } })
  // And a lost connection is lost, whatever it refused before.
  const lost = connect()
  greet(lost.connection, { password: 'p', database: 1 }, (result) => results.push(result))
  lost.pipe.say('-WRONGPASS invalid\r\n')
  lost.pipe.end()
  expect(results[3]).toEqual({ kind: 'lost' })
})
