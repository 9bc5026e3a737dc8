import { ReplyDecoder } from '@firebreak/core/resp'
import { expect, test } from 'vitest'
import { encodeKeyRead, parseKeyRead } from './key-read.ts'

const bytes = (text: string) => Buffer.from(text, 'latin1')

test('a key and its TTL are read in one transaction', () => {
  const decoder = new ReplyDecoder({ bulk: 'text' })
  decoder.feed(encodeKeyRead(bytes('k'), bytes('*2\r\n$3\r\nGET\r\n$1\r\nk\r\n')))
  const words = []
  for (let value = decoder.next(); value !== undefined; value = decoder.next()) words.push(value)
  expect(words).toEqual([['MULTI'], ['PTTL', 'k'], ['GET', 'k'], ['EXEC']])
})

test('the reply of EXEC gives the TTL and the bytes after it', () => {
  const parsed = parseKeyRead(bytes('*2\r\n:1234\r\n$3\r\nabc\r\n'))
  expect(parsed?.pttlMs).toBe(1234)
  expect(Buffer.from(parsed!.reply).toString()).toBe('$3\r\nabc\r\n')
  expect(parseKeyRead(bytes('*2\r\n:-1\r\n$3\r\nabc\r\n'))?.pttlMs).toBe(-1)
  expect(parseKeyRead(bytes('*2\r\n:-2\r\n_\r\n'))?.pttlMs).toBe(-2)
})

test('an error, in EXEC or instead of it, does not count as a read', () => {
  expect(parseKeyRead(bytes('-EXECABORT Transaction discarded\r\n'))).toBeUndefined()
  expect(parseKeyRead(bytes('*2\r\n:-1\r\n-WRONGTYPE wrong\r\n'))).toBeUndefined()
  expect(parseKeyRead(bytes('*2\r\n:-1\r\n!5\r\nERR x\r\n'))).toBeUndefined()
  expect(parseKeyRead(bytes('_\r\n'))).toBeUndefined()
})
