import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decompressLzf, lzfPrefix } from './lzf.ts'

/** The simplest correct compressor: runs become references, the rest is literal. */
function compress(data: Uint8Array): Uint8Array {
  const out: number[] = []
  for (let at = 0; at < data.length; ) {
    let run = 0
    while (at > 0 && run < 264 && at + run < data.length && data[at + run] === data[at - 1 + run]) run++
    if (run >= 3) {
      const length = run - 2
      if (length < 7) out.push(length << 5, 0)
      else out.push(7 << 5, length - 7, 0)
      at += run
    } else {
      out.push(0, data[at]!)
      at++
    }
  }
  return Uint8Array.from(out)
}

const data = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 600 }).map((bytes) => Uint8Array.from(bytes))

test('compressed data is restored, and any beginning of it from a bounded beginning', () => {
  fc.assert(
    fc.property(data, fc.nat(600), (bytes, cut) => {
      const packed = compress(bytes)
      expect(decompressLzf(packed, 0, packed.length, bytes.length)).toEqual(bytes)
      const wanted = Math.min(cut, bytes.length)
      const enough = Math.min(packed.length, lzfPrefix(wanted))
      expect(decompressLzf(packed, 0, enough, wanted)).toEqual(bytes.subarray(0, wanted))
    }),
  )
})

test('a reference before the beginning, and input that ends too early, are reported as damage', () => {
  expect(decompressLzf(Uint8Array.from([0x20, 5]), 0, 2, 4)).toBeUndefined()
  expect(decompressLzf(Uint8Array.from([3, 1, 2]), 0, 3, 4)).toBeUndefined()
  expect(decompressLzf(Uint8Array.from([0xe0]), 0, 1, 4)).toBeUndefined()
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), fc.nat(5000), (bytes, wanted) => {
      const result = decompressLzf(bytes, 0, bytes.length, wanted)
      expect(result === undefined || result.length === wanted).toBe(true)
    }),
  )
})
