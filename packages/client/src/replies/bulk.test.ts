import { expect, test } from 'vitest'
import { bufferOfBulk, textOfBulk } from './bulk.ts'

const bytes = (text: string) => Buffer.from(text, 'latin1')

test('a bulk string is its text and its bytes, of whatever length', () => {
  for (const text of ['', 'a', '€', 'line\r\nend', 'x'.repeat(100_000)]) {
    const body = Buffer.from(text)
    const reply = Buffer.concat([bytes(`$${body.length}\r\n`), body, bytes('\r\n')])
    expect(textOfBulk(reply)).toBe(text)
    expect(bufferOfBulk(reply)).toEqual(body)
  }
})

test('a Buffer belongs to its caller: changing it does not change another reply', () => {
  const reply = bytes('$1\r\na\r\n')
  bufferOfBulk(reply)![0] = 0x62
  expect(textOfBulk(reply)).toBe('a')
})

test('a key that does not exist is null in both protocols', () => {
  for (const nil of ['_\r\n', '$-1\r\n']) {
    expect(textOfBulk(bytes(nil))).toBe(null)
    expect(bufferOfBulk(bytes(nil))).toBe(null)
  }
})

test('any other reply is left to its own decoder', () => {
  for (const other of [':1\r\n', '+OK\r\n', '-ERR no\r\n', '*0\r\n', ',1.5\r\n']) {
    expect(textOfBulk(bytes(other))).toBe(undefined)
    expect(bufferOfBulk(bytes(other))).toBe(undefined)
  }
})
