import { t } from '../text/text.ts'

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })
const short = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1 })
const prefixes = ['', 'k', 'M', 'G', 'T', 'P']

/** A number with its SI prefix: `980`, `12.4 k`, `3 M`. */
export function si(value: number, unit = ''): string {
  let scaled = Math.abs(value)
  let at = 0
  // 999.96 would be shown as 1,000.
  while (scaled >= 999.95 && at < prefixes.length - 1) {
    scaled /= 1000
    at++
  }
  const text = `${value < 0 ? '−' : ''}${(at === 0 && scaled >= 10 ? whole : short).format(scaled)}`
  const suffix = `${prefixes[at]}${unit}`
  return suffix === '' ? text : `${text} ${suffix}`
}

/** A rate for a column: `4,120/s` up to ten thousand, `12.4 k/s` above. */
export function rate(perSecond: number): string {
  return perSecond >= 10_000
    ? `${si(perSecond)}/s`
    : `${perSecond >= 10 ? whole.format(perSecond) : short.format(perSecond)}/s`
}

/** A part of one as per cent. */
export function percent(share: number): string {
  return `${short.format(share * 100)} %`
}

/** Bytes with the fitting unit. */
export function bytes(count: number): string {
  return si(count, 'B')
}

/** A duration in milliseconds, in the unit that reads best. */
export function milliseconds(ms: number): string {
  return ms < 1000 ? `${short.format(ms)} ms` : duration(ms)
}

/** How long something takes: `12 s`, `3 min`, `2 h`, `4 d`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, ms / 1000)
  if (seconds < 100) return `${seconds < 10 ? short.format(seconds) : Math.round(seconds)} s`
  if (seconds < 3570) return `${Math.round(seconds / 60)} min`
  if (seconds < 172_800) return `${seconds < 36_000 ? short.format(seconds / 3600) : Math.round(seconds / 3600)} h`
  return `${Math.round(seconds / 86_400)} d`
}

/** A time of day. */
export function timeOfDay(ms: number): string {
  return new Date(ms).toLocaleTimeString('en-GB', { hour12: false })
}

/** A time with its day: `2026-11-18 03:04:05`. */
export function dateTime(ms: number): string {
  const date = new Date(ms)
  const two = (value: number) => String(value).padStart(2, '0')
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${timeOfDay(ms)}`
}

/** How long ago, without the word: `12 s`, `3 min`. */
export function ago(fromMs: number, nowMs: number): string {
  return duration(Math.round(Math.max(0, nowMs - fromMs) / 1000) * 1000)
}

/** `3 min ago`, or `in 3 min`. */
export function relative(atMs: number, nowMs: number): string {
  return atMs > nowMs ? t('in {time}', { time: ago(nowMs, atMs) }) : t('{time} ago', { time: ago(atMs, nowMs) })
}

export function count(value: number): string {
  return value >= 1_000_000 ? si(value) : whole.format(value)
}
