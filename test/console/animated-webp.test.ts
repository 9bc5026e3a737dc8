import { expect, test } from 'vitest'
import { animatedWebp } from './animated-webp.ts'

/** A WebP of one chunk, as small as can be. */
const still = (name: string, body: string) => {
  const picture = Buffer.concat([Buffer.from(name), Buffer.from([body.length, 0, 0, 0]), Buffer.from(body)])
  const padded = Buffer.concat([picture, Buffer.alloc(body.length % 2)])
  return Buffer.concat([Buffer.from('RIFF'), Buffer.from([padded.length + 4, 0, 0, 0]), Buffer.from('WEBP'), padded])
}

test('pictures become frames of one file, with their sizes and times', () => {
  const file = animatedWebp(
    [
      { webp: still('VP8 ', 'abc'), shownMs: 250 },
      { webp: still('VP8L', 'de'), shownMs: 1000 },
    ],
    300,
    200,
  )
  expect(file.readUInt32LE(4)).toBe(file.length - 8)
  const names: string[] = []
  for (let at = 12; at < file.length; ) {
    const length = file.readUInt32LE(at + 4)
    names.push(file.toString('latin1', at, at + 4))
    if (names.at(-1) === 'VP8X') expect([file.readUIntLE(at + 12, 3), file.readUIntLE(at + 15, 3)]).toEqual([299, 199])
    if (names.at(-1) === 'ANMF')
      names.push(`${file.readUIntLE(at + 20, 3)} ms ${file.toString('latin1', at + 24, at + 28)}`)
    at += 8 + length + (length % 2)
  }
  expect(names).toEqual(['VP8X', 'ANIM', 'ANMF', '250 ms VP8 ', 'ANMF', '1000 ms VP8L'])
  expect(() => animatedWebp([{ webp: Buffer.from('\x89PNG and more'), shownMs: 1 }], 1, 1)).toThrow('no WebP')
})
