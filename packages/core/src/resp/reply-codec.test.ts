import fc from 'fast-check'
import { expect, test } from 'vitest'
import { encodeReply } from './encode-reply.ts'
import { ReplyDecoder, type ReplyDecoderOptions } from './reply-decoder.ts'
import { ReplyScanner } from './reply-scanner.ts'
import { RespError } from './resp-error.ts'
import {
  Attributed,
  BigNumber,
  Double,
  ErrorReply,
  MapReply,
  PushReply,
  type RespValue,
  SetReply,
  Verbatim,
} from './value.ts'

const runs = process.env['FIREBREAK_FULL'] === '1' ? 20_000 : 600

const line = fc.string({ unit: 'grapheme' }).filter((text) => !/[\r\n]/.test(text))
const bytes = fc.uint8Array({ maxLength: 60 })
const scalar: fc.Arbitrary<RespValue> = fc.oneof(
  line,
  bytes,
  fc.maxSafeInteger(),
  fc.bigInt({ min: 2n ** 53n, max: 2n ** 63n - 1n }),
  fc.bigInt({ min: -(2n ** 63n), max: -(2n ** 53n) }),
  fc.boolean(),
  fc.constant(null),
  fc.double().map((value) => new Double(value)),
  fc.bigInt().map((value) => new BigNumber(value)),
  line.map((text) => new ErrorReply(text)),
  fc.string().map((text) => new ErrorReply(`ERR ${text}\r\nsecond line`)),
  fc.tuple(fc.stringMatching(/^[a-z]{3}$/), bytes).map(([format, text]) => new Verbatim(format, text)),
)
const flatten = (pairs: [RespValue, RespValue][]) => new MapReply(pairs.flat())
const { value } = fc.letrec<{ value: RespValue; plain: RespValue; map: MapReply }>((tie) => ({
  plain: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    scalar,
    fc.array(tie('value'), { maxLength: 6 }),
    fc.array(tie('value'), { maxLength: 6 }).map((items) => new SetReply(items)),
    tie('map'),
  ),
  map: fc.array(fc.tuple(tie('value'), tie('value')), { maxLength: 4 }).map(flatten),
  value: fc.oneof(
    { weight: 9, arbitrary: tie('plain') },
    { weight: 1, arbitrary: fc.tuple(tie('map'), tie('plain')).map(([map, plain]) => new Attributed(map, plain)) },
  ),
}))
const reply = fc.oneof(
  { weight: 6, arbitrary: value },
  { weight: 1, arbitrary: fc.array(value, { minLength: 1, maxLength: 4 }).map((items) => new PushReply(items)) },
)
const cuts = fc.array(fc.nat(), { maxLength: 12 })

/** The bytes, split at arbitrary positions. */
function pieces(all: Uint8Array, at: readonly number[]): Uint8Array[] {
  const places = [...new Set(at.map((cut) => cut % (all.length + 1)))].sort((a, b) => a - b)
  return [...places, all.length].map((end, index) => all.slice(places[index - 1] ?? 0, end))
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts))
}

function decodeAll(parts: readonly Uint8Array[], options: ReplyDecoderOptions = { attributes: 'keep' }) {
  const decoder = new ReplyDecoder(options)
  const values: RespValue[] = []
  for (const part of parts) {
    decoder.feed(part)
    for (let next = decoder.next(); next !== undefined; next = decoder.next()) values.push(next)
  }
  return { values, isIdle: decoder.isIdle }
}

test('whatever is encoded in RESP3 decodes to the same, wherever the chunks are cut', () => {
  fc.assert(
    fc.property(fc.array(reply, { maxLength: 4 }), cuts, (replies, at) => {
      const all = concat(replies.map((each) => encodeReply(each, 3)))
      const { values, isIdle } = decodeAll(pieces(all, at))
      expect(values).toStrictEqual(replies)
      expect(isIdle).toBe(true)
    }),
    { numRuns: runs },
  )
})

test('a reply that comes byte by byte, fed before it is read, decodes to the same', () => {
  fc.assert(
    fc.property(reply, (each) => {
      const all = encodeReply(each, 3)
      const decoder = new ReplyDecoder({ attributes: 'keep' })
      for (const byte of all) decoder.feed(Uint8Array.of(byte))
      expect(decoder.next()).toStrictEqual(each)
      expect(decoder.next()).toBeUndefined()
      expect(decodeAll([...all].map((byte) => Uint8Array.of(byte))).values).toStrictEqual([each])
    }),
    { numRuns: Math.ceil(runs / 4) },
  )
})

/** A value as RESP2 represents it. */
function inRespTwo(given: RespValue): RespValue {
  const text = (shown: string) => new Uint8Array(new TextEncoder().encode(shown))
  if (typeof given === 'boolean') return given ? 1 : 0
  if (given instanceof Double) {
    if (Number.isNaN(given.value)) return text('nan')
    if (!Number.isFinite(given.value)) return text(given.value > 0 ? 'inf' : '-inf')
    return text(Object.is(given.value, -0) ? '-0' : String(given.value))
  }
  if (given instanceof BigNumber) return text(String(given.value))
  if (given instanceof Verbatim) return given.bytes
  if (given instanceof ErrorReply) return new ErrorReply(given.text.replace(/[\r\n]+/g, ' '))
  if (given instanceof MapReply || given instanceof SetReply || given instanceof PushReply) {
    return given.items.map(inRespTwo)
  }
  if (given instanceof Attributed) return inRespTwo(given.value)
  if (Array.isArray(given)) return given.map(inRespTwo)
  return given
}

test('in RESP2 every RESP3 type decodes to what Redis sends there instead', () => {
  fc.assert(
    fc.property(reply, cuts, (each, at) => {
      const encoded = encodeReply(each, 2)
      expect(decodeAll(pieces(encoded, at)).values).toStrictEqual([inRespTwo(each)])
    }),
    { numRuns: runs },
  )
})

test('the scanner ends each reply where the decoder does, wherever the chunks are cut, and knows pushes and errors', () => {
  fc.assert(
    fc.property(fc.array(reply, { minLength: 1, maxLength: 4 }), cuts, (replies, at) => {
      const encoded = replies.map((each) => encodeReply(each, 3))
      const ends: number[] = []
      const seen: { isPush: boolean; isError: boolean }[] = []
      const scanner = new ReplyScanner()
      let before = 0
      for (const piece of pieces(concat(encoded), at)) {
        for (let from = 0; from < piece.length; ) {
          from = scanner.scan(piece, from, piece.length)
          if (!scanner.isDone) {
            expect(from).toBe(piece.length)
            continue
          }
          ends.push(before + from)
          seen.push({ isPush: scanner.isPush, isError: scanner.type === 0x2d || scanner.type === 0x21 })
        }
        before += piece.length
      }
      let end = 0
      expect(ends).toEqual(encoded.map((each) => (end += each.length)))
      expect(scanner.isDone).toBe(true)
      const inner = replies.map((each) => (each instanceof Attributed ? each.value : each))
      expect(seen).toEqual(
        inner.map((each) => ({ isPush: each instanceof PushReply, isError: each instanceof ErrorReply })),
      )
    }),
    { numRuns: runs },
  )
})

/** Bytes that look enough like RESP to be parsed for a while. */
const nearlyResp = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '*2\r\n',
        '*?\r\n',
        '%1\r\n',
        '|1\r\n',
        '>1\r\n',
        '$3\r\nabc\r\n',
        '$?\r\n',
        ';2\r\nab\r\n',
        ';0\r\n',
      ),
      fc.constantFrom(
        '.\r\n',
        '_\r\n',
        ':12\r\n',
        '+OK\r\n',
        '#t\r\n',
        ',1.5\r\n',
        '(99\r\n',
        '=5\r\ntxt:a\r\n',
        '!1\r\nx\r\n',
      ),
      fc.constantFrom(
        '*-1\r\n',
        '$-1\r\n',
        '*99999999999\r\n',
        '$99999999999999999999\r\n',
        '\r\n',
        '\n',
        '~0\r\n',
        ':\r\n',
      ),
      fc.string({ maxLength: 3 }),
    ),
    { maxLength: 30 },
  )
  .map((parts) => new Uint8Array(Buffer.from(parts.join(''), 'latin1')))

test('arbitrary bytes give values or an error with a code, never a crash, and the same error however they are split', () => {
  const outcome = (parts: readonly Uint8Array[]) => {
    const decoder = new ReplyDecoder({ attributes: 'keep', maxDepth: 16 })
    const values: RespValue[] = []
    try {
      for (const part of parts) {
        decoder.feed(part)
        for (let next = decoder.next(); next !== undefined; next = decoder.next()) values.push(next)
      }
      return { values, code: 'none' }
    } catch (error) {
      if (!(error instanceof RespError)) throw error
      expect(() => decoder.next()).toThrow(error)
      return { values, code: error.code }
    }
  }
  fc.assert(
    fc.property(fc.oneof(nearlyResp, fc.uint8Array({ maxLength: 200 })), cuts, (all, at) => {
      expect(outcome(pieces(all, at))).toStrictEqual(outcome([all]))
    }),
    { numRuns: runs * 4 },
  )
})

test('on arbitrary bytes the scanner continues or ends with a code, and finds the replies that the decoder finds', () => {
  fc.assert(
    fc.property(fc.oneof(nearlyResp, fc.uint8Array({ maxLength: 200 })), cuts, (all, at) => {
      const scanner = new ReplyScanner()
      let scanned = 0
      try {
        for (const piece of pieces(all, at)) {
          for (let from = 0; from < piece.length; ) {
            const next = scanner.scan(piece, from, piece.length)
            expect(next).toBeGreaterThan(from)
            from = next
            if (scanner.isDone) scanned++
          }
        }
      } catch (error) {
        if (!(error instanceof RespError)) throw error
      }
      let decoded = 0
      const decoder = new ReplyDecoder()
      try {
        decoder.feed(all)
        while (decoder.next() !== undefined) decoded++
      } catch (error) {
        if (!(error instanceof RespError)) throw error
      }
      // The decoder checks more; if it accepts the bytes, the scanner must too, with the same count.
      expect(scanned).toBeGreaterThanOrEqual(decoded)
    }),
    { numRuns: runs * 4 },
  )
})
