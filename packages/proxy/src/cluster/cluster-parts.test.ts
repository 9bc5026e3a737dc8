import { keySlot } from '@firebreak/core/commands'
import { RequestParser } from '@firebreak/core/resp'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { UpstreamLostError } from '../errors.ts'
import { JoinedReply } from './joined-reply.ts'
import { redirectOf } from './redirect.ts'
import { joinCursor, splitCursor } from './scan-cursor.ts'
import { keysOfParts, splitRequest } from './split.ts'

const words = (bytes: Uint8Array) => {
  const parser = new RequestParser()
  parser.parse(bytes, 0, bytes.length)
  return Array.from({ length: parser.length }, (_, index) =>
    Buffer.from(parser.bytes.subarray(parser.startOf(index), parser.endOf(index))).toString(),
  )
}

test('a split MGET asks each slot for its own keys, and the joined reply has every value in its position', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ maxLength: 5 }), { minLength: 1, maxLength: 30 }), (keys) => {
      const { parts, join } = splitRequest(
        'MGET',
        ['MGET', ...keys].map((word) => Buffer.from(word)),
      )!
      expect(keysOfParts(parts).map((key) => Buffer.from(key).toString())).toEqual(keys)
      let whole = ''
      const sink = { answer: (reply: Buffer) => (whole = reply.toString()), onLost: () => {} }
      const places = parts.map((part) => part.places)
      const joined = new JoinedReply({ kind: join, parts: parts.length, isWrite: false, places }, sink)
      for (const [index, { slot, bytes }] of [...parts.entries()].reverse()) {
        const own = words(bytes).slice(1)
        expect(own.every((key) => keySlot(key) === slot)).toBe(true)
        const reply = Buffer.from(`*${own.length}\r\n${own.map((key) => bulk(key)).join('')}`)
        joined.onReply(index, reply, 0, reply.length, true)
      }
      expect(whole).toBe(`*${keys.length}\r\n${keys.map(bulk).join('')}`)
    }),
  )
})

function bulk(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`
}

test('joins replies by sum, by the minimum at each position, or by the first error of all parts', () => {
  const join = (kind: 'sum' | 'all' | 'least', ...replies: string[]) => {
    let whole = ''
    const sink = { answer: (reply: Buffer) => (whole = reply.toString()), onLost: () => {} }
    const joined = new JoinedReply({ kind, parts: replies.length, isWrite: false }, sink)
    for (const [part, reply] of replies.entries()) joined.onReply(part, Buffer.from(reply), 0, reply.length, true)
    return whole
  }
  expect(join('sum', ':3\r\n', ':4\r\n')).toBe(':7\r\n')
  expect(join('all', '+OK\r\n', '+OK\r\n')).toBe('+OK\r\n')
  expect(join('all', '+OK\r\n', '-ERR x\r\n')).toBe('-ERR x\r\n')
  expect(join('least', '*2\r\n:1\r\n:1\r\n', '*2\r\n:1\r\n:0\r\n')).toBe('*2\r\n:1\r\n:0\r\n')
})

test('a write that was partly carried out never looks like one that was not', () => {
  const error = new UpstreamLostError('host:1', 'it does not answer')
  const join = (...parts: (string | { readonly wasSent: boolean })[]) => {
    let whole = ''
    const joined = new JoinedReply(
      { kind: 'all', parts: parts.length, isWrite: true },
      { answer: (reply) => (whole = reply.toString()), onLost: (_, wasSent) => (whole = `lost ${wasSent}`) },
    )
    for (const [part, reply] of parts.entries()) {
      if (typeof reply === 'string') joined.onReply(part, Buffer.from(reply), 0, reply.length, true)
      else joined.onLost(part, error, reply.wasSent)
    }
    return whole
  }
  const unsent = { wasSent: false }
  const unknown = { wasSent: true }
  expect(join(unsent, unsent)).toBe('lost false')
  expect(join('-OOM x\r\n', unsent)).toBe('lost false')
  expect(join(unsent, unknown, unsent)).toBe('lost true')
  expect(join(unsent, '+OK\r\n')).toBe(
    '-ERR Firebreak: a part of this command was carried out; of another: no connection to Redis at host:1: it does not answer\r\n',
  )
  expect(join('+OK\r\n', unknown, unsent)).toMatch(
    /^-ERR Firebreak: a part of this command was carried out; .* unknown\r\n$/,
  )
  expect(join('-OOM x\r\n', '+OK\r\n')).toBe('-OOM x (Firebreak: another part of this command was carried out)\r\n')
  expect(join('-OOM x\r\n', '-OOM x\r\n')).toBe('-OOM x\r\n')
})

test('cursors of nodes become one cursor and back', () => {
  fc.assert(
    fc.property(fc.nat(2000), fc.bigInt(1n, 2n ** 52n - 1n), (node, cursor) => {
      const joined = joinCursor(node, cursor, 2001)
      expect(joined < 2n ** 63n).toBe(true)
      expect(splitCursor(String(joined))).toEqual({ node, cursor })
    }),
  )
  expect(joinCursor(0, 0n, 2)).toBe(1n << 52n)
  expect(joinCursor(1, 0n, 2)).toBe(0n)
  expect([splitCursor(''), splitCursor('+5')]).toEqual([
    { node: 0, cursor: 0n },
    { node: 0, cursor: 5n },
  ])
  expect(splitCursor('-1')).toEqual({ node: 4095, cursor: 2n ** 52n - 1n })
  expect(['x', '-', '1x', ' 1', String(2n ** 64n)].map(splitCursor)).toEqual(new Array(5).fill(undefined))
})

test('redirections are read, other errors are the client’s', () => {
  const of = (text: string) => redirectOf(Buffer.from(`${text}\r\n`))
  expect(of('-MOVED 3999 127.0.0.1:6381')).toEqual({ kind: 'moved', slot: 3999, host: '127.0.0.1', port: 6381 })
  expect(of('-ASK 1 fe80::1:7000')).toEqual({ kind: 'ask', slot: 1, host: 'fe80::1', port: 7000 })
  expect(of('-MOVED 1 :7000')).toEqual({ kind: 'moved', slot: 1, host: '', port: 7000 })
  expect(of('-TRYAGAIN x')).toEqual({ kind: 'later' })
  expect(of('-ERR MOVED')).toBeUndefined()
  expect(of('-CROSSSLOT x')).toBeUndefined()
})
