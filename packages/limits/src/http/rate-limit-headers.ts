import type { Answer } from '../answer.ts'
import type { LimitSpec } from '../spec/spec.ts'
import { capacityOf } from '../spec/specs.ts'

/** A limit with the name that its headers use. */
export interface NamedLimit {
  readonly name: string
  readonly spec: LimitSpec
}

/**
 * `RateLimit-Policy` as in the IETF draft: for each limit its quota `q` and, if any, its window `w`; and `unavailable`
 * if it could not be reached and its policy for that (open or closed) answered.
 */
export function policyHeader(limits: readonly NamedLimit[], answers: Readonly<Record<string, Answer>> = {}): string {
  return limits
    .map(({ name, spec }) => {
      const seconds = windowSeconds(spec)
      const source = Object.hasOwn(answers, name) ? answers[name]!.source : undefined
      const state = source === 'open' || source === 'closed' ? `;unavailable=${source}` : ''
      return `${quoted(name)};q=${capacityOf(spec)}${seconds === undefined ? '' : `;w=${seconds}`}${state}`
    })
    .join(', ')
}

/**
 * `RateLimit`: for each limit the remaining units, `r`, and in how many seconds there are more, `t`: for a refused
 * request the time to retry, as in `Retry-After`, otherwise the time until the limit is unused again. A limit that
 * could not be reached is omitted here and marked in `RateLimit-Policy`.
 */
export function limitHeader(answers: Readonly<Record<string, Answer>>): string {
  return Object.entries(answers)
    .filter(([, { source }]) => source !== 'open' && source !== 'closed')
    .map(([name, answer]) => `${quoted(name)};r=${answer.remaining};t=${secondsOf(answer)}`)
    .join(', ')
}

/**
 * The older headers, for the tightest of several limits: its size, what remains, and in how many seconds there is more.
 * If several refuse, it is the one that does so longest, as in `Retry-After`.
 */
export function legacyHeaders(
  limits: readonly NamedLimit[],
  answers: Readonly<Record<string, Answer>>,
): Record<string, string> {
  let tightest: { readonly limit: NamedLimit; readonly answer: Answer } | undefined
  for (const limit of limits) {
    const answer = answers[limit.name]
    if (answer === undefined || answer.source === 'open' || answer.source === 'closed') continue
    if (tightest === undefined || isTighter(answer, tightest.answer)) tightest = { limit, answer }
  }
  if (tightest === undefined) return {}
  return {
    'X-RateLimit-Limit': String(capacityOf(tightest.limit.spec)),
    'X-RateLimit-Remaining': String(tightest.answer.remaining),
    'X-RateLimit-Reset': String(secondsOf(tightest.answer)),
  }
}

function isTighter(answer: Answer, other: Answer): boolean {
  if (answer.allowed !== other.allowed) return other.allowed
  return answer.allowed ? answer.remaining < other.remaining : refusedMs(answer) > refusedMs(other)
}

/** `null`: it will never be admitted. */
const refusedMs = ({ retryAfterMs }: Answer) => retryAfterMs ?? Number.POSITIVE_INFINITY

function secondsOf({ allowed, retryAfterMs, resetMs }: Answer): number {
  return allowed || retryAfterMs === null ? Math.ceil(resetMs / 1000) : retryAfterSeconds(retryAfterMs)
}

/** `Retry-After` in whole seconds, never too early. */
export function retryAfterSeconds(retryAfterMs: number): number {
  return Math.max(1, Math.ceil(retryAfterMs / 1000))
}

/** A structured-field string: printable ASCII only. */
function quoted(text: string): string {
  return `"${text.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')}"`
}

/** The window of a limit in seconds; for buckets the time until they are full again. */
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
