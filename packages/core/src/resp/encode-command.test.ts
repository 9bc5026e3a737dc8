import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { encodeCommand } from './encode-command.ts'
import { textOf, utf8Length, writeUtf8 } from './text.ts'

test('a command is an array of bulk strings with lengths in bytes', () => {
  const bytes = encodeCommand(['SET', 'ключ', new Uint8Array([0, 13, 10, 255]), 12, -1.5, 10n ** 20n])
  const expected =
    '*6\r\n$3\r\nSET\r\n$8\r\nключ\r\n$4\r\n\0\r\nÿ\r\n$2\r\n12\r\n$4\r\n-1.5\r\n$21\r\n100000000000000000000\r\n'
  const parts = expected.split('ÿ')
  expect(Buffer.from(bytes)).toEqual(
    Buffer.concat([Buffer.from(parts[0]!), Buffer.from([255]), Buffer.from(parts[1]!)]),
  )
})

test('lengths of ten, a hundred and a thousand are written in full', () => {
  for (const length of [0, 9, 10, 99, 100, 999, 1000, 123456]) {
    const text = 'x'.repeat(length)
    expect(Buffer.from(encodeCommand([text])).toString()).toBe(`*1\r\n$${length}\r\n${text}\r\n`)
  }
})

test('any text, lone surrogates included, is encoded and decoded as Buffer does it', () => {
  const unit = fc.oneof(fc.constantFrom('a', 'é', '€', '😀', '\ud800', '\udc00', '\0'), fc.string({ unit: 'binary' }))
  fc.assert(
    fc.property(fc.array(unit, { maxLength: 60 }), (units) => {
      const text = units.join('')
      const expected = Buffer.from(text)
      expect(utf8Length(text)).toBe(expected.length)
      const target = new Uint8Array(expected.length + 2)
      writeUtf8(target, 1, text, expected.length)
      expect(Buffer.from(target.subarray(1, -1))).toEqual(expected)
      expect([target[0], target.at(-1)]).toEqual([0, 0])
      expect(textOf(new Uint8Array(expected))).toBe(expected.toString())
      expect(textOf(expected)).toBe(expected.toString())
    }),
  )
})

test('a byte order mark and broken UTF-8 are read as Buffer reads them', () => {
  for (const bytes of [Uint8Array.of(0xef, 0xbb, 0xbf, 0x61), Uint8Array.of(0x61, 0xc3), Uint8Array.of(0xff, 0x62)]) {
    expect(textOf(bytes)).toBe(Buffer.from(bytes).toString())
  }
})

test('without Buffer, as in a browser, the results are the same', async () => {
  const args = ['SET', 'kéy', 'x'.repeat(100), '€'.repeat(50), Uint8Array.of(1, 2, 255), 7]
  const expected = [...encodeCommand(args)]
  vi.resetModules()
  const { Buffer: node } = globalThis
  vi.stubGlobal('Buffer', undefined)
  try {
    const browser = await import('./encode-command.ts')
    const text = await import('./text.ts')
    const encoded = browser.encodeCommand(args)
    const shown = '\ufeff€'.repeat(20)
    const bytes = new TextEncoder().encode(shown)
    const seen = [
      text.textOf(bytes),
      text.utf8Length(shown),
      text.textOf(Uint8Array.of(0x61, 0xc3)),
      encoded.constructor.name,
    ]
    vi.stubGlobal('Buffer', node)
    expect([...encoded]).toEqual(expected)
    expect(seen).toEqual([shown, bytes.length, 'a\ufffd', 'Uint8Array'])
  } finally {
    vi.unstubAllGlobals()
  }
})
