import { createClient, RESP_TYPES } from 'redis'
import { expect, test } from 'vitest'
import type { NodeRedisConnection } from './node-redis-client.ts'
import { ReplyReader } from './reply-reader.ts'

const readerOf = (RESP: 2 | 3) => new ReplyReader(createClient({ RESP }) as unknown as NodeRedisConnection)
const bytes = (text: string) => Buffer.from(text, 'latin1')

test('a kept reply is what the connection would have returned in its protocol', () => {
  expect(readerOf(3).read('GET', bytes('$1\r\na\r\n'))).toBe('a')
  expect(readerOf(3).read('GET', bytes('_\r\n'))).toBe(null)
  expect(readerOf(3).read('ZSCORE', bytes(',1.5\r\n'))).toBe(1.5)
  expect(readerOf(2).read('ZSCORE', bytes(',1.5\r\n'))).toBe('1.5')
  const map = bytes('%1\r\n$1\r\na\r\n$1\r\nb\r\n')
  expect(readerOf(2).read('HGETALL', map)).toEqual(['a', 'b'])
  expect({ ...(readerOf(3).read('HGETALL', map) as object) }).toEqual({ a: 'b' })
})

test('the type mapping of the command is used', () => {
  const reply = readerOf(3).read('GET', bytes('$1\r\n\xff\r\n'), { [RESP_TYPES.BLOB_STRING]: Buffer })
  expect(reply).toEqual(Buffer.from([0xff]))
})

test('each call gives objects of its own', () => {
  const reader = readerOf(3)
  const list = bytes('*1\r\n$1\r\na\r\n')
  const first = reader.read('LRANGE', list) as string[]
  first.push('mine')
  expect(reader.read('LRANGE', list)).toEqual(['a'])
})

test('an error of the server is distinguished from a failure of the connection', () => {
  const reader = readerOf(3)
  const client = createClient()
  const ErrorReply = Object.getPrototypeOf(errorOf(client)).constructor as new (message: string) => Error
  expect(reader.isErrorReply(new ErrorReply('ERR no'))).toBe(true)
  expect(reader.isErrorReply(new Error('Socket closed unexpectedly'))).toBe(false)
  expect(reader.isErrorReply(undefined)).toBe(false)
})

/** An error as the decoder of the installed version creates it. */
function errorOf(client: unknown): unknown {
  const { decoder } = (client as { _self: NodeRedisConnection })._self._getQueue()
  let made: unknown
  const config = {
    onReply() {},
    onPush() {},
    getTypeMapping: () => ({}),
    onErrorReply: (error: unknown) => (made = error),
  }
  const own = new (decoder.constructor as new (config: object) => { write(bytes: Buffer): void })(config)
  own.write(bytes('-ERR no\r\n'))
  return made
}
