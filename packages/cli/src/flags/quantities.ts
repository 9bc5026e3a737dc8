import { UsageError } from '../command/command.ts'

const timeUnits: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }
const byteUnits: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  k: 1024,
  kb: 1024,
  kib: 1024,
  m: 1024 ** 2,
  mb: 1024 ** 2,
  mib: 1024 ** 2,
  g: 1024 ** 3,
  gb: 1024 ** 3,
  gib: 1024 ** 3,
}

/** `10s`, `500ms`, `2m`; a bare number is seconds. */
export function durationMs(flag: string, text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text)
  if (match === null) throw new UsageError(`--${flag} is "${text}"; write a duration such as 500ms, 10s or 2m`)
  return Number(match[1]) * timeUnits[match[2] ?? 's']!
}

/** `64mb`, `10k`; a bare number is bytes. */
export function byteCount(flag: string, text: string): number {
  const match = /^(\d+(?:\.\d+)?)([a-z]*)$/i.exec(text)
  const unit = match === null ? undefined : byteUnits[match[2]!.toLowerCase()]
  if (unit === undefined) throw new UsageError(`--${flag} is "${text}"; write a size such as 500, 64kb or 1gb`)
  return Number(match![1]) * unit
}

/** A whole number within bounds. */
export function wholeNumber(flag: string, text: string, least: number, most: number): number {
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < least || value > most) {
    throw new UsageError(`--${flag} is "${text}"; it must be a whole number from ${least} to ${most}`)
  }
  return value
}
