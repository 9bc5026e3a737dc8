import type { CombinePart } from './combine-part.ts'

/** The answer for each part, when the last of them made the counter `value` and all of them together added `sum`. */
export function repliesOf(value: number | bigint, sum: number, parts: readonly CombinePart[]): Buffer[] {
  if (Number.isSafeInteger(value)) {
    let at = (value as number) - sum
    if (Number.isSafeInteger(at)) return parts.map(({ command }) => replyOf((at += command.amount)))
  }
  let at = BigInt(value) - BigInt(sum)
  return parts.map(({ command }) => replyOf((at += BigInt(command.amount))))
}

function replyOf(value: number | bigint): Buffer {
  return Buffer.from(`:${value}\r\n`, 'latin1')
}

/** The number in a reply; undefined if it is not one. A bigint if a number would not be exact. */
export function counterValue(reply: unknown): number | bigint | undefined {
  if (typeof reply === 'number' || typeof reply === 'bigint') return reply
  const text = typeof reply === 'string' ? reply : reply instanceof Uint8Array ? Buffer.from(reply).toString() : ''
  if (!/^-?\d+$/.test(text)) return undefined
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : BigInt(text)
}
