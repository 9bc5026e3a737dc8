import { expect, test } from 'vitest'
import { parseMonitorLine } from './monitor-line.ts'

const args = (line: string) => parseMonitorLine(line)?.args.map((arg) => arg.toString('latin1'))

test('a line gives time, database, client and arguments', () => {
  expect(parseMonitorLine('+1700000000.123456 [3 127.0.0.1:5000] "SET" "k" "v"')).toMatchObject({
    timestampSeconds: 1700000000.123456,
    database: 3,
    client: '127.0.0.1:5000',
  })
  expect(args('+1.5 [0 lua] "get" "a b"')).toEqual(['get', 'a b'])
  expect(args('+1.5 [0 [::1]:5000] "get" "k"')).toEqual(['get', 'k'])
  expect(args('+1.5 [0 unix:/tmp/redis.sock] "get" "k"')).toEqual(['get', 'k'])
})

test('escapes are decoded to the bytes they stand for', () => {
  expect(args('+1.5 [0 c] "\\"q\\"" "\\\\" "\\x00\\xff\\n\\r\\t\\a\\b" ""')).toEqual([
    '"q"',
    '\\',
    '\x00\xff\n\r\t\x07\b',
    '',
  ])
  expect(args('+1.5 [0 c] "ends with \\\\" "next"')).toEqual(['ends with \\', 'next'])
})

test('anything else is not accepted as a line', () => {
  for (const line of ['+OK', '', '+1.5 [0 c] ', '+1.5 [0 c] "open', '+1.5 [0 c] bare']) {
    expect(parseMonitorLine(line)).toBeUndefined()
  }
})
