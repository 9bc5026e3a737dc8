import { expect, test } from 'vitest'
import { ReplyDecoder, type ReplyDecoderOptions } from './reply-decoder.ts'
import { Attributed, BigNumber, Double, ErrorReply, MapReply, PushReply, SetReply, Verbatim } from './value.ts'

const encoder = new TextEncoder()

function decode(text: string, options?: ReplyDecoderOptions) {
  const decoder = new ReplyDecoder(options)
  decoder.feed(encoder.encode(text))
  const values = []
  for (let next = decoder.next(); next !== undefined; next = decoder.next()) values.push(next)
  return values
}

function codeOf(text: string, options?: ReplyDecoderOptions): unknown {
  try {
    decode(text, options)
    return 'none'
  } catch (error) {
    return (error as { code: unknown }).code
  }
}

test.each<[string, string, unknown]>([
  ['simple string', '+OK\r\n', 'OK'],
  ['error', '-WRONGTYPE no\r\n', new ErrorReply('WRONGTYPE no')],
  ['integer', ':-42\r\n', -42],
  ['integer with a plus', ':+42\r\n', 42],
  ['integer beyond 2^53', ':9223372036854775807\r\n', 9223372036854775807n],
  ['bulk string', '$5\r\nhé\r\n\r\n', encoder.encode('hé\r\n')],
  ['empty bulk string', '$0\r\n\r\n', new Uint8Array(0)],
  ['null bulk string', '$-1\r\n', null],
  ['null array', '*-1\r\n', null],
  ['empty array', '*0\r\n', []],
  ['nested array', '*2\r\n*1\r\n:1\r\n*0\r\n', [[1], []]],
  ['null', '_\r\n', null],
  ['true', '#t\r\n', true],
  ['false', '#f\r\n', false],
  ['double', ',3.25\r\n', new Double(3.25)],
  ['double without a fraction', ',10\r\n', new Double(10)],
  ['double with an exponent', ',1.5e-9\r\n', new Double(1.5e-9)],
  ['infinity', ',-inf\r\n', new Double(Number.NEGATIVE_INFINITY)],
  ['no number', ',nan\r\n', new Double(Number.NaN)],
  [
    'big number',
    '(3492890328409238509324850943850943825024385\r\n',
    new BigNumber(3492890328409238509324850943850943825024385n),
  ],
  ['blob error', '!9\r\nSYNTAX\r\nx\r\n', new ErrorReply('SYNTAX\r\nx')],
  ['verbatim string', '=9\r\ntxt:Hello\r\n', new Verbatim('txt', encoder.encode('Hello'))],
  ['map', '%2\r\n+a\r\n:1\r\n+b\r\n*0\r\n', new MapReply(['a', 1, 'b', []])],
  ['set', '~2\r\n+a\r\n:1\r\n', new SetReply(['a', 1])],
  ['push', '>2\r\n+invalidate\r\n_\r\n', new PushReply(['invalidate', null])],
  ['streamed string', '$?\r\n;4\r\nHell\r\n;1\r\no\r\n;0\r\n', encoder.encode('Hello')],
  ['streamed array', '*?\r\n:1\r\n*?\r\n.\r\n:2\r\n.\r\n', [1, [], 2]],
  ['streamed set', '~?\r\n:1\r\n.\r\n', new SetReply([1])],
  ['streamed map', '%?\r\n+a\r\n:1\r\n.\r\n', new MapReply(['a', 1])],
  ['attribute, dropped', '|1\r\n+ttl\r\n:3600\r\n*1\r\n|0\r\n:1\r\n', [1]],
])('%s', (_name, text, value) => {
  expect(decode(text)).toEqual([value])
  expect(decode(`*2\r\n:7\r\n${text}`.replace('>', '*'))).toEqual([
    [7, value instanceof PushReply ? value.items : value],
  ])
})

test('attributes can be kept with the value that follows them', () => {
  expect(decode('*2\r\n:1\r\n|1\r\n+ttl\r\n:3600\r\n:2\r\n', { attributes: 'keep' })).toEqual([
    [1, new Attributed(new MapReply(['ttl', 3600]), 2)],
  ])
})

test('pushes between replies are distinguished from them', () => {
  expect(decode('+a\r\n>1\r\n+message\r\n+b\r\n')).toEqual(['a', new PushReply(['message']), 'b'])
})

test('an error reply gives its kind', () => {
  expect([new ErrorReply('MOVED 3999 h:1').kind, new ErrorReply('ERR').kind]).toEqual(['MOVED', 'ERR'])
})

test('bulk strings are views of the chunk by default, copies or text on demand', () => {
  const chunk = encoder.encode('$3\r\nabc\r\n')
  const read = (options: ReplyDecoderOptions) => {
    const decoder = new ReplyDecoder(options)
    decoder.feed(chunk)
    return decoder.next()
  }
  expect((read({}) as Uint8Array).buffer).toBe(chunk.buffer)
  const copy = read({ bulk: 'copy' }) as Uint8Array
  expect([copy.buffer === chunk.buffer, ...copy]).toEqual([false, 97, 98, 99])
  expect(read({ bulk: 'text' })).toBe('abc')
  const buffer = new ReplyDecoder({ bulk: 'copy' })
  buffer.feed(Buffer.from(chunk))
  expect((buffer.next() as Uint8Array).buffer.byteLength).toBe(3)
})

test('a copied bulk string that arrived in pieces survives the reuse of the chunk', () => {
  const decoder = new ReplyDecoder({ bulk: 'copy' })
  const chunk = encoder.encode('$6\r\nabc')
  decoder.feed(chunk)
  expect(decoder.next()).toBeUndefined()
  chunk.fill(0)
  decoder.feed(encoder.encode('def\r\n'))
  expect(decoder.next()).toEqual(encoder.encode('abcdef'))
})

test.each<[string, string, string, ReplyDecoderOptions]>([
  ['a byte that begins no type', 'HTTP/1.1 200\r\n', 'FB_RESP_PROTOCOL', {}],
  ['a line feed alone', '+OK\n', 'FB_RESP_PROTOCOL', {}],
  ['an empty line', '\r\n', 'FB_RESP_PROTOCOL', {}],
  ['a length that is no number', '$x\r\n', 'FB_RESP_PROTOCOL', {}],
  ['a negative length', '$-2\r\n', 'FB_RESP_PROTOCOL', {}],
  ['a negative count', '%-1\r\n', 'FB_RESP_PROTOCOL', {}],
  ['an invalid integer', ':1.5\r\n', 'FB_RESP_PROTOCOL', {}],
  ['an invalid boolean', '#x\r\n', 'FB_RESP_PROTOCOL', {}],
  ['an invalid double', ',1,5\r\n', 'FB_RESP_PROTOCOL', {}],
  ['an invalid big number', '(1e9\r\n', 'FB_RESP_PROTOCOL', {}],
  ['a bulk string without its end', '$1\r\nabc\r\n', 'FB_RESP_PROTOCOL', {}],
  ['a verbatim string without a format', '=2\r\nab\r\n', 'FB_RESP_PROTOCOL', {}],
  ['a push inside an array', '*1\r\n>1\r\n:1\r\n', 'FB_RESP_PROTOCOL', {}],
  ['an end of nothing', '.\r\n', 'FB_RESP_PROTOCOL', {}],
  ['an end inside a counted array', '*?\r\n*1\r\n.\r\n', 'FB_RESP_PROTOCOL', {}],
  ['a streamed map of half an entry', '%?\r\n+a\r\n.\r\n', 'FB_RESP_PROTOCOL', {}],
  ['a part of no streamed string', ';1\r\na\r\n', 'FB_RESP_PROTOCOL', {}],
  ['a value inside a streamed string', '$?\r\n:1\r\n', 'FB_RESP_PROTOCOL', {}],
  ['a bulk string over its bound', '$11\r\n', 'FB_RESP_TOO_LARGE', { maxBulkBytes: 10 }],
  ['a streamed string over its bound', '$?\r\n;6\r\n123456\r\n;6\r\n', 'FB_RESP_TOO_LARGE', { maxBulkBytes: 10 }],
  ['an array over its bound', '*11\r\n', 'FB_RESP_TOO_LARGE', { maxElements: 10 }],
  ['a map over its bound', '%6\r\n', 'FB_RESP_TOO_LARGE', { maxElements: 10 }],
  ['a streamed array over its bound', '*?\r\n:1\r\n:1\r\n:1\r\n', 'FB_RESP_TOO_LARGE', { maxElements: 2 }],
  ['a line over its bound', `+${'x'.repeat(20)}`, 'FB_RESP_TOO_LARGE', { maxLineBytes: 10 }],
  ['a depth over its bound', '*1\r\n*1\r\n*1\r\n', 'FB_RESP_TOO_DEEP', { maxDepth: 2 }],
])('%s is refused', (_name, text, code, options) => {
  expect(codeOf(text, options)).toBe(code)
})

test('a limit that is not a whole number is refused at once', () => {
  expect(() => new ReplyDecoder({ maxDepth: 0 })).toThrow(expect.objectContaining({ code: 'FB_OPTION_INVALID' }))
})

test('an announced bulk string takes memory only as it arrives', () => {
  const before = process.memoryUsage().arrayBuffers
  const decoders = Array.from({ length: 20 }, () => new ReplyDecoder())
  for (const decoder of decoders) {
    decoder.feed(encoder.encode(`$${500 * 1024 * 1024}\r\nabc`))
    expect(decoder.next()).toBeUndefined()
  }
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(100 * 1024 * 1024)
})

test('decoding an array in many chunks takes time in proportion to its bytes, not to their square', () => {
  const timeOf = (count: number) => {
    const item = encoder.encode('$3\r\nabc\r\n')
    const start = performance.now()
    const decoder = new ReplyDecoder()
    decoder.feed(encoder.encode(`*${count}\r\n`))
    let value = decoder.next()
    for (let index = 0; index < count; index++) {
      decoder.feed(item)
      value = decoder.next()
    }
    expect(value).toHaveLength(count)
    return performance.now() - start
  }
  timeOf(5_000)
  const small = Math.min(timeOf(5_000), timeOf(5_000), timeOf(5_000))
  const large = Math.min(timeOf(100_000), timeOf(100_000))
  // Twenty times the items take about twenty times as long; rereading from the start each time would take 400 times.
  expect(large / small).toBeLessThan(120)
})
