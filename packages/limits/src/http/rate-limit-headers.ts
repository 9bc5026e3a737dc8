import type { Answer } from '../answer.ts'
import type { LimitSpec } from '../spec/spec.ts'
import { capacityOf } from '../spec/specs.ts'

/** A limit with the name that its headers use. */
export interface NamedLimit {
  readonly name: string
  readonly spec: LimitSpec
}

/** `RateLimit-Policy` as the IETF's draft has it: for each limit its quota `q` and, where it has one, its window `w`. */
export function policyHeader(limits: readonly NamedLimit[]): string {
  return limits
    .map(({ name, spec }) => {
      const seconds = windowSeconds(spec)
      return `${quoted(name)};q=${capacityOf(spec)}${seconds === undefined ? '' : `;w=${seconds}`}`
    })
    .join(', ')
}

/** `RateLimit`: for each limit what remains, `r`, and in how many seconds it is whole again, `t`. */
export function limitHeader(answers: Readonly<Record<string, Answer>>): string {
  return Object.entries(answers)
    .map(([name, { remaining, resetMs }]) => `${quoted(name)};r=${remaining};t=${Math.ceil(resetMs / 1000)}`)
    .join(', ')
}

/** `Retry-After` in whole seconds, never too early. */
export function retryAfterSeconds(retryAfterMs: number): number {
  return Math.max(1, Math.ceil(retryAfterMs / 1000))
}

/** A string of structured fields: printable ASCII only. */
function quoted(text: string): string {
  return `"${text.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')}"`
}

/** The window of a limit in seconds; for buckets the time in which all of it comes back. */
function windowSeconds(spec: LimitSpec): number | undefined {
  const seconds = (ms: number) => Math.max(1, Math.ceil(ms / 1000))
  switch (spec.kind) {
    case 'concurrency':
      return undefined
    case 'calendarWindow':
      return { hour: 3600, day: 86_400, week: 604_800, month: 2_592_000 }[spec.unit]
    case 'tokenBucket':
      return seconds((spec.capacity * spec.perMs) / spec.refill)
    case 'leakyBucket':
      return seconds((spec.capacity * spec.perMs) / spec.leak)
    case 'gcra':
      return seconds((spec.capacity * spec.perMs) / spec.rate)
    case 'leakyQueue':
      return seconds((spec.queue + 1) * spec.intervalMs)
    default:
      return seconds(spec.windowMs)
  }
}
