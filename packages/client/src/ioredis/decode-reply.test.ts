import { expect, test } from 'vitest'
import { decodeReply, flattenPairs, type ReplyMapping, replyMappingOf } from './decode-reply.ts'
import type { IoredisClient } from './ioredis-client.ts'

const legacy: ReplyMapping = { protocol: 3, isLegacy: true, hasTextNumbers: false }
const resp3: ReplyMapping = { protocol: 3, isLegacy: false, hasTextNumbers: false }
const textNumbers: ReplyMapping = { protocol: 3, isLegacy: false, hasTextNumbers: true }
const decode = (reply: string, mapping: ReplyMapping) => decodeReply(Buffer.from(reply, 'latin1'), mapping)
const text = (value: string) => Buffer.from(value, 'latin1')

test.each([
  ['+OK\r\n', text('OK'), text('OK')],
  ['$3\r\na\r\n\r\n', text('a\r\n'), text('a\r\n')],
  ['$0\r\n\r\n', text(''), text('')],
  ['$-1\r\n', null, null],
  ['_\r\n', null, null],
  ['*-1\r\n', null, null],
  ['*0\r\n', [], []],
  [':-12\r\n', -12, -12],
  ['(12345678901234567890\r\n', '12345678901234567890', '12345678901234567890'],
  ['#t\r\n', 1, true],
  ['#f\r\n', 0, false],
  [',3.25\r\n', text('3.25'), 3.25],
  ['=7\r\ntxt:abc\r\n', text('abc'), text('abc')],
  ['~2\r\n:1\r\n:2\r\n', [1, 2], [1, 2]],
  ['*2\r\n*1\r\n$1\r\na\r\n_\r\n', [[text('a')], null], [[text('a')], null]],
])('%j: the shape of RESP2, or that of RESP3 where the client asked for it', (reply, asLegacy, asResp3) => {
  expect(decode(reply, legacy)).toEqual(asLegacy)
  expect(decode(reply, resp3)).toEqual(asResp3)
})

test('a map is a flat list for RESP2, and an object without inherited names for RESP3', () => {
  const reply = '%2\r\n$1\r\na\r\n:1\r\n$9\r\n__proto__\r\n:2\r\n'
  expect(decode(reply, legacy)).toEqual([text('a'), 1, text('__proto__'), 2])
  const map = decode(reply, resp3) as Record<string, unknown>
  expect(Object.keys(map)).toEqual(['a', '__proto__'])
  expect(Object.getPrototypeOf(map)).toBe(null)
})

test('numbers stay text if the client wants that', () => {
  expect(decode('*3\r\n:9007199254740993\r\n,0.1\r\n(1\r\n', textNumbers)).toEqual(['9007199254740993', '0.1', '1'])
})

test('each call makes Buffers of its own', () => {
  const reply = text('$1\r\na\r\n')
  const first = decodeReply(reply, legacy) as Buffer
  first[0] = 0x62
  expect(decodeReply(reply, legacy)).toEqual(text('a'))
})

test('a reply in the middle of a larger buffer is decoded in place', () => {
  const around = text('??$1\r\na\r\n??')
  expect(decodeReply(around.subarray(2, 9), legacy)).toEqual(text('a'))
})

test('members with their scores become one list for the commands that had one in RESP2, and for no other', () => {
  const pairs = [
    ['a', '1'],
    ['b', '2'],
  ]
  expect(flattenPairs('zrange', pairs)).toEqual(['a', '1', 'b', '2'])
  expect(flattenPairs('ZRANGE', pairs)).toEqual(['a', '1', 'b', '2'])
  expect(flattenPairs('lrange', pairs)).toBe(pairs)
  expect(flattenPairs('zrange', null)).toBe(null)
})

test('the mapping of a cluster is that of its nodes', () => {
  const options = { redisOptions: { protocol: 2, stringNumbers: true } }
  const cluster = { isCluster: true, options } as unknown as IoredisClient
  expect(replyMappingOf(cluster)).toEqual({ protocol: 2, isLegacy: true, hasTextNumbers: true })
  const alone = { options: { replyMapping: 'resp3' } } as unknown as IoredisClient
  expect(replyMappingOf(alone)).toEqual({ protocol: 3, isLegacy: false, hasTextNumbers: false })
})
