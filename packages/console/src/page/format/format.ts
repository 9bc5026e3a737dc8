const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })
const short = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1 })

/** A rate for a column: `4,120/s`, below ten with one decimal. */
export function rate(perSecond: number): string {
  return `${perSecond >= 10 ? whole.format(perSecond) : short.format(perSecond)}/s`
}

/** A part of one as per cent. */
export function percent(share: number): string {
  return `${short.format(share * 100)} %`
}

/** Bytes with the fitting unit. */
export function bytes(count: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let value = count
  let unit = 0
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000
    unit++
  }
  return `${short.format(value)} ${units[unit]}`
}

/** A duration in milliseconds. */
export function milliseconds(ms: number): string {
  return `${short.format(ms)} ms`
}

/** A time of day. */
export function timeOfDay(ms: number): string {
  return new Date(ms).toLocaleTimeString(undefined, { hour12: false })
}

/** How long ago: `12 s`, `3 min`, `2 h`. */
export function ago(fromMs: number, nowMs: number): string {
  const seconds = Math.max(0, Math.round((nowMs - fromMs) / 1000))
  if (seconds < 100) return `${seconds} s`
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`
  return `${Math.round(seconds / 3600)} h`
}

export function count(value: number): string {
  return whole.format(value)
}
