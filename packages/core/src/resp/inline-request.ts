import { RequestError } from './resp-error.ts'

/** Collects the arguments of an inline request. */
export interface ArgumentSink {
  /** An argument that appears verbatim in the line. */
  addRange(start: number, end: number): void
  /** An argument with quotes or escapes, whose bytes are not in the line. */
  addBytes(bytes: Uint8Array): void
}

const doubleQuote = 0x22
const singleQuote = 0x27
const backslash = 0x5c
const escapes: Record<number, number> = { 110: 0x0a, 114: 0x0d, 116: 0x09, 98: 0x08, 97: 0x07 }

// Whitespace between arguments: whatever C's `isspace` accepts.
function isSpace(byte: number): boolean {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)
}

// What ends an argument. Not quite the same: by Redis' rules, a vertical tab or form feed is part of it.
function isEnd(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d
}

function hexOf(byte: number | undefined): number {
  if (byte === undefined) return -1
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}

/**
 * Splits a typed line into arguments by the rules of redis-cli and Redis' inline requests: blanks separate; in "double
 * quotes" `\n \r \t \b \a \xHH` are escapes, and a backslash keeps the next byte as it is; in 'single quotes' only `\'`
 * is an escape; a closing quote must be followed by a blank or the end.
 */
export function splitInline(line: Uint8Array, start: number, end: number, sink: ArgumentSink): void {
  let at = start
  for (;;) {
    while (at < end && isSpace(line[at]!)) at++
    if (at >= end) return
    let stop = at
    while (stop < end && !isEnd(line[stop]!) && line[stop] !== doubleQuote && line[stop] !== singleQuote) stop++
    if (stop >= end || isEnd(line[stop]!)) {
      sink.addRange(at, stop)
      at = stop
    } else at = unquote(line, at, end, sink)
  }
}

/** Reads one quoted argument from `start`; returns the offset after it. */
function unquote(line: Uint8Array, start: number, end: number, sink: ArgumentSink): number {
  // The unquoted text is never longer than its source.
  const bytes = new Uint8Array(end - start)
  let length = 0
  let quote = 0
  let at = start
  for (; at < end; at++) {
    const byte = line[at]!
    if (quote === 0) {
      if (isEnd(byte)) break
      if (byte === doubleQuote || byte === singleQuote) quote = byte
      else bytes[length++] = byte
    } else if (byte === quote) {
      if (at + 1 < end && !isSpace(line[at + 1]!)) throw unbalanced()
      quote = 0
      at++
      break
    } else if (byte === backslash && at + 1 < end && quote === doubleQuote) {
      const high = hexOf(line[at + 2])
      const low = hexOf(line[at + 3])
      if (line[at + 1] === 0x78 && at + 3 < end && high >= 0 && low >= 0) {
        bytes[length++] = high * 16 + low
        at += 3
      } else {
        const escaped = line[++at]!
        bytes[length++] = escapes[escaped] ?? escaped
      }
    } else if (byte === backslash && quote === singleQuote && at + 1 < end && line[at + 1] === singleQuote) {
      bytes[length++] = singleQuote
      at++
    } else bytes[length++] = byte
  }
  if (quote !== 0) throw unbalanced()
  sink.addBytes(bytes.subarray(0, length))
  return at
}

function unbalanced(): RequestError {
  return new RequestError('unbalanced quotes in request')
}
