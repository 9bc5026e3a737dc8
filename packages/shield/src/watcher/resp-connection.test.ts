import { Duplex } from 'node:stream'
import type { RespValue } from '@firebreak/core'
import { FakeClock } from '@firebreak/testkit'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { RespConnection } from './resp-connection.ts'

/** A socket whose other end is the test. */
function socket(): Duplex {
  return new Duplex({ read() {}, write: (_, __, done) => done() })
}

test('replies and pushes come in the order of their bytes, however they are cut', () => {
  const stream = Buffer.from(
    '$3\r\nabc\r\n>2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n*2\r\n:5\r\n$-1\r\n>2\r\n+invalidate\r\n_\r\n+PONG\r\n',
  )
  fc.assert(
    fc.property(fc.array(fc.nat(stream.length), { maxLength: 10 }), (cuts) => {
      const seen: string[] = []
      const link = socket()
      const connection = new RespConnection(link, {
        clock: new FakeClock(),
        onPush: (items: readonly RespValue[]) => seen.push(`push ${JSON.stringify(items[1])}`),
        onClose: () => {},
      })
      const record = (reply: Uint8Array | undefined) => void seen.push(Buffer.from(reply!).toString('latin1'))
      connection.send(Buffer.from('x'), [record, record, record])
      const places = [0, ...cuts.toSorted((a, b) => a - b), stream.length]
      for (let index = 1; index < places.length; index++)
        link.emit('data', stream.subarray(places[index - 1], places[index]))
      expect(seen.map((text) => text.slice(0, 4))).toEqual(['$3\r\n', 'push', '*2\r\n', 'push', '+PON'])
      expect(seen[3]).toBe('push null')
    }),
  )
})

test('a lost connection tells everyone who waits, once, and whoever comes later', () => {
  const link = socket()
  let closes = 0
  const connection = new RespConnection(link, { clock: new FakeClock(), onPush: () => {}, onClose: () => closes++ })
  const replies: unknown[] = []
  connection.send(Buffer.from('x'), [(reply) => replies.push(reply), (reply) => replies.push(reply)])
  link.emit('data', Buffer.from('+OK\r\n'))
  connection.destroy()
  link.emit('close')
  connection.send(Buffer.from('x'), [(reply) => replies.push(reply)])
  expect(replies.slice(1)).toEqual([undefined, undefined])
  expect(closes).toBe(1)
})

test('bytes that are no RESP, or a reply that nobody asked for, end the connection', () => {
  for (const text of ['?what\r\n', '+OK\r\n']) {
    const link = socket()
    let failure: unknown
    new RespConnection(link, {
      clock: new FakeClock(),
      onPush: () => {},
      onClose: (error) => {
        failure = error
      },
    })
    link.emit('data', Buffer.from(text))
    expect(failure).toBeInstanceOf(Error)
    expect(link.destroyed).toBe(true)
  }
})

test('an answer proves the server alive as of when its request was sent', () => {
  const clock = new FakeClock(1000)
  const link = socket()
  const connection = new RespConnection(link, { clock, onPush: () => {}, onClose: () => {} })
  connection.send(Buffer.from('x'), [() => {}])
  clock.advance(70)
  link.emit('data', Buffer.from('+PONG\r\n'))
  expect(connection.answeredSentAt).toBe(1000)
})
