import fc from 'fast-check'
import { expect, test } from 'vitest'
import { encodeCommand } from './encode-command.ts'
import { RequestParser, type RequestParserOptions } from './request-parser.ts'
import { RequestError, RespError } from './resp-error.ts'

const runs = process.env['FIREBREAK_FULL'] === '1' ? 20_000 : 500

function argsOf(parser: RequestParser): string[] {
  return Array.from({ length: parser.length }, (_, index) =>
    Buffer.from(parser.bytes.subarray(parser.startOf(index), parser.endOf(index))).toString('latin1'),
  )
}

/** All requests in a text, each as a list of arguments. */
function parseAll(text: string, options?: RequestParserOptions): string[][] {
  const bytes = Buffer.from(text, 'latin1')
  const parser = new RequestParser(options)
  const requests: string[][] = []
  for (let at = 0, next = 0; at < bytes.length; at = next) {
    next = parser.parse(bytes, at, bytes.length)
    if (next === 0) break
    requests.push(argsOf(parser))
  }
  return requests
}

test('multibulk and inline requests follow each other', () => {
  expect(parseAll('*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\nset k v\n*1\r\n$4\r\nQUIT\r\n')).toEqual([
    ['GET', 'k'],
    ['PING'],
    ['set', 'k', 'v'],
    ['QUIT'],
  ])
})

test('of a request with more arguments than the limit, only the first ones are read until the limit is raised', () => {
  const bytes = Buffer.from('*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n')
  const parser = new RequestParser()
  parser.headOnlyAbove = 2
  expect([parser.parse(bytes, 0, bytes.length), parser.expectedLength, parser.length]).toEqual([0, 3, 0])
  expect(parser.parse(bytes, 0, bytes.length)).toBe(0)
  parser.headOnlyAbove = 3
  expect(parser.parse(bytes, 0, bytes.length)).toBe(bytes.length)
  expect(argsOf(parser)).toEqual(['a', 'b', 'c'])
})

test('a blank line and an empty array are requests without arguments', () => {
  expect(parseAll('\r\n*0\r\n*-1\r\n   \nPING\r\n')).toEqual([[], [], [], [], ['PING']])
})

test.each<[string, string[]]>([
  ['  set   k  v  ', ['set', 'k', 'v']],
  ['set k "a b"', ['set', 'k', 'a b']],
  ['set k "\\n\\r\\t\\b\\a\\x41\\x0\\q\\"\\\\"', ['set', 'k', '\n\r\t\b\x07Ax0q"\\']],
  ["set k 'a\\nb\\'c'", ['set', 'k', "a\\nb'c"]],
  ['set k ""', ['set', 'k', '']],
  ['set a"b c" d', ['set', 'ab c', 'd']],
  ['x \'a\' "b" c', ['x', 'a', 'b', 'c']],
])('inline: %s', (line, args) => {
  expect(parseAll(`${line}\r\n`)).toEqual([args])
})

test.each<[string, string]>([
  ['*a\r\n', 'invalid multibulk length'],
  ['*+1\r\n', 'invalid multibulk length'],
  ['*01\r\n', 'invalid multibulk length'],
  ['*\r\n', 'invalid multibulk length'],
  ['*2147483648\r\n', 'invalid multibulk length'],
  ['*1\r\n:1\r\n', "expected '$', got ':'"],
  ['*1\r\n\r\n\r\n', "expected '$', got ' '"],
  ['*1\r\n\r\n\x00', "expected '$', got ' '"],
  [`*1\r\n\x001\r\n${'\r\n'.repeat(40_000)}`, 'too big bulk count string'],
  [`*1\x00\r\n${'\r\n'.repeat(40_000)}`, 'too big mbulk count string'],
  ['*1\r\n\xffx\r\n', "expected '$', got '\xff'"],
  [`PING \x00\r\n${'\r\n'.repeat(40_000)}`, 'too big inline request'],
  ['*1\r\n$-1\r\n', 'invalid bulk length'],
  ['*1\r\n$x\r\n', 'invalid bulk length'],
  ['*1\r\n$536870913\r\n', 'invalid bulk length'],
  ['get "k\r\n', 'unbalanced quotes in request'],
  ['get "k"x\r\n', 'unbalanced quotes in request'],
  ["get 'k\r\n", 'unbalanced quotes in request'],
  ['x'.repeat(70_000), 'too big inline request'],
  [`*${'1'.repeat(70_000)}`, 'too big mbulk count string'],
  [`*1\r\n$${'1'.repeat(70_000)}`, 'too big bulk count string'],
])('%.20s is refused as Redis does', (text, sentence) => {
  expect(() => parseAll(text)).toThrow(RequestError)
  expect(() => parseAll(text)).toThrow(
    expect.objectContaining({ code: 'FB_RESP_REQUEST', reply: `ERR Protocol error: ${sentence}` }),
  )
})

test('custom limits are respected', () => {
  expect(() => new RequestParser({ maxArguments: 0 })).toThrow('maxArguments')
  expect(() => parseAll('*3\r\n', { maxArguments: 2 })).toThrow('invalid multibulk length')
  expect(() => parseAll('*1\r\n$11\r\n', { maxBulkBytes: 10 })).toThrow('invalid bulk length')
  expect(() => parseAll('x'.repeat(20), { maxInlineBytes: 10 })).toThrow('too big inline request')
})

test('requests in pieces, in a buffer whose bytes are moved between calls, give the same arguments', () => {
  const bytes = fc.uint8Array({ maxLength: 40 })
  const request = fc.array(bytes, { minLength: 1, maxLength: 40 })
  fc.assert(
    fc.property(
      fc.array(request, { minLength: 1, maxLength: 4 }),
      fc.array(fc.nat(60)),
      fc.nat(20),
      (all, sizes, shift) => {
        const stream = Buffer.concat(all.map((args) => encodeCommand(args)))
        const parser = new RequestParser()
        const seen: string[][] = []
        // The buffer holds the unread bytes, after a gap whose size changes with every chunk.
        let unread = Buffer.alloc(0)
        let at = 0
        let turn = 0
        while (at < stream.length) {
          const size = (sizes[turn % Math.max(1, sizes.length)] ?? 7) + 1
          unread = Buffer.concat([unread, stream.subarray(at, at + size)])
          at += size
          const gap = (shift * ++turn) % 17
          const buffer = Buffer.concat([Buffer.alloc(gap, 0x2a), unread])
          let start = gap
          for (let next = parser.parse(buffer, start, buffer.length); next !== 0; ) {
            seen.push(argsOf(parser))
            start = next
            next = parser.parse(buffer, start, buffer.length)
          }
          unread = buffer.subarray(start)
        }
        expect(seen).toEqual(all.map((args) => args.map((arg) => Buffer.from(arg).toString('latin1'))))
      },
    ),
    { numRuns: runs },
  )
})

test('an incomplete argument says how many bytes are still to come', () => {
  const parser = new RequestParser()
  const bytes = Buffer.from('*2\r\n$3\r\nSET\r\n$100\r\nabc')
  expect(parser.parse(bytes, 0, bytes.length)).toBe(0)
  expect(parser.missingBytes).toBe(99)
  expect([parser.length, parser.expectedLength, parser.readEnd]).toEqual([1, 2, 13])
  parser.reset()
  const ping = Buffer.from('PING\r\n')
  expect(parser.parse(ping, 0, ping.length)).toBe(6)
  expect(argsOf(parser)).toEqual(['PING'])
})

test('arbitrary bytes are requests, incomplete requests, or refused; never a crash', () => {
  const nearly = fc
    .array(
      fc.constantFrom(
        '*1\r\n',
        '*2\r\n',
        '$1\r\na\r\n',
        '$3\r\nabc\r\n',
        '"',
        "'",
        '\\x4',
        ' ',
        'get',
        '\r\n',
        '\0',
        '$-1\r\n',
      ),
    )
    .map((parts) => new Uint8Array(Buffer.from(parts.join(''))))
  fc.assert(
    fc.property(fc.oneof(nearly, fc.uint8Array({ maxLength: 100 })), (bytes) => {
      const parser = new RequestParser()
      try {
        for (let at = 0; at < bytes.length; ) {
          const next = parser.parse(bytes, at, bytes.length)
          if (next === 0) break
          expect(next).toBeGreaterThan(at)
          at = next
        }
      } catch (error) {
        if (!(error instanceof RespError)) throw error
      }
    }),
    { numRuns: runs * 4 },
  )
})

test('a request whose end exceeds any offset is refused before it arrives', () => {
  const parser = new RequestParser({ maxBulkBytes: 2 ** 40 })
  const header = (length: number) => Buffer.from(`*2\r\n$3\r\nGET\r\n$${length}\r\n`)
  const parse = (bytes: Buffer) => parser.parse(bytes, 0, bytes.length)
  expect(parse(header(2 ** 31 - 100))).toBe(0)
  parser.reset()
  expect(() => parse(header(2 ** 31))).toThrow('too big request')
})

test.each(['*', '*1\r\n$'])('a count that comes byte by byte behind %j costs its length, not its square', (head) => {
  const bytes = Buffer.from(head + '1'.repeat(60_000))
  const parser = new RequestParser()
  const before = process.cpuUsage()
  for (let end = 1; end <= bytes.length; end++) if (parser.parse(bytes, 0, end) !== 0) expect.fail(`whole at ${end}`)
  const { user } = process.cpuUsage(before)
  expect(user / 1000).toBeLessThan(1000)
})
