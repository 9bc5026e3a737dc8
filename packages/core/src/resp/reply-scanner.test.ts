import { expect, test } from 'vitest'
import { ReplyScanner } from './reply-scanner.ts'

const scan = (scanner: ReplyScanner, text: string) => scanner.scan(new TextEncoder().encode(text))

test('a huge bulk string is forwarded as it arrives, and the number of missing bytes is known', () => {
  const scanner = new ReplyScanner()
  expect(scan(scanner, '*2\r\n:1\r\n$1000000\r\nabc')).toBe(21)
  expect([scanner.isDone, scanner.missingBytes]).toEqual([false, 999_999])
  const piece = new Uint8Array(65_536)
  let rest = 999_999
  while (rest > 0) {
    const size = Math.min(rest, piece.length)
    expect(scanner.scan(piece, 0, size)).toBe(size)
    rest -= size
    expect(scanner.missingBytes).toBe(rest)
  }
  expect(scanner.isDone).toBe(true)
})

test('only the bytes of one reply are consumed, and the next call continues with the next reply', () => {
  const scanner = new ReplyScanner()
  const bytes = new TextEncoder().encode('+a\r\n>1\r\n:1\r\n-ERR x\r\n$-1\r\n')
  const seen: unknown[] = []
  for (let at = 0; at < bytes.length; ) {
    at = scanner.scan(bytes, at)
    seen.push([at, scanner.isPush, String.fromCharCode(scanner.type)])
  }
  expect(seen).toEqual([
    [4, false, '+'],
    [12, true, '>'],
    [20, false, '-'],
    [25, false, '$'],
  ])
})

test('streamed replies end with their dot, even if they contain counted ones', () => {
  const scanner = new ReplyScanner()
  const text = '*?\r\n*2\r\n:1\r\n*0\r\n%?\r\n+a\r\n$?\r\n;1\r\nx\r\n;0\r\n.\r\n.\r\n'
  for (let cut = 1; cut < text.length; cut++) {
    expect(scan(scanner, text.slice(0, cut))).toBe(cut)
    expect(scanner.isDone).toBe(false)
    expect(scan(scanner, `${text.slice(cut)}+next`)).toBe(text.length - cut)
    expect(scanner.isDone).toBe(true)
  }
})

test.each<[string, string, string]>([
  ['a byte that begins no type', 'x\r\n', 'FB_RESP_PROTOCOL'],
  ['a length that is no number', '$1x\r\n', 'FB_RESP_PROTOCOL'],
  ['a missing length', '*\r\n', 'FB_RESP_PROTOCOL'],
  ['a negative count', '%-1\r\n', 'FB_RESP_PROTOCOL'],
  ['a dot inside a counted array', '*?\r\n*1\r\n.\r\n', 'FB_RESP_PROTOCOL'],
  ['a carriage return alone', '+a\rb\r\n', 'FB_RESP_PROTOCOL'],
  ['a line feed alone', '+a\n', 'FB_RESP_PROTOCOL'],
  ['a bulk string over its bound', '$536870913\r\n', 'FB_RESP_TOO_LARGE'],
  ['a length of many digits', `$${'1'.repeat(16)}`, 'FB_RESP_TOO_LARGE'],
  ['an array over its bound', '*4294967297\r\n', 'FB_RESP_TOO_LARGE'],
  ['a line over its bound', `+${'x'.repeat(70_000)}\r\n`, 'FB_RESP_TOO_LARGE'],
  ['streamed arrays in streamed arrays without end', '*?\r\n'.repeat(200), 'FB_RESP_TOO_DEEP'],
])('%s is refused', (_name, text, code) => {
  expect(() => scan(new ReplyScanner(), text)).toThrow(expect.objectContaining({ code }))
})

test('a million nested arrays need no memory', () => {
  const scanner = new ReplyScanner()
  scan(scanner, '*1\r\n'.repeat(1_000_000))
  expect(scanner.isDone).toBe(false)
  scan(scanner, ':1\r\n')
  expect(scanner.isDone).toBe(true)
})
