import { expect, test } from 'vitest'
import { Crc64 } from './crc64.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

/** Bit by bit, as defined. */
function slow(data: Uint8Array): bigint {
  let crc = 0n
  for (const byte of data) {
    crc ^= BigInt(byte)
    for (let bit = 0; bit < 8; bit++) crc = crc & 1n ? (crc >> 1n) ^ 0x95ac9329ac4bc9b5n : crc >> 1n
  }
  return crc
}

test('the check value of the polynomial is the published one', () => {
  const crc = new Crc64()
  crc.update(bytes('123456789'), 0, 9)
  expect(crc.value).toBe(0xe9c6d914c4b8d9can)
})

test('any split of any bytes gives what the definition gives', () => {
  const data = Uint8Array.from({ length: 200 }, (_, index) => (index * 151 + 7) & 0xff)
  const expected = slow(data)
  for (const cut of [0, 1, 7, 8, 9, 63, 100, 199, 200]) {
    const crc = new Crc64()
    crc.update(data, 0, cut)
    crc.update(data, cut, data.length)
    expect(crc.value, `cut at ${cut}`).toBe(expected)
  }
})
