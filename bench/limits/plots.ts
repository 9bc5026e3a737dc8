// Draws what each algorithm admits of the same bursty traffic into the guide; with --print to stdout.
// node --conditions=firebreak-source bench/limits/plots.ts
import { writeFileSync } from 'node:fs'
import {
  fixedWindow,
  gcra,
  type LimitSpec,
  leakyBucket,
  leakyQueue,
  localLimiter,
  slidingCounter,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@firebreak/limits'

/** All admit about 10 a second in the long run. */
const specs: Record<string, LimitSpec> = {
  'fixed window, 10 per second': fixedWindow({ limit: 10, windowMs: 1000 }),
  'sliding window, classic, 10 buckets': slidingWindow({ limit: 10, windowMs: 1000, mode: 'classic' }),
  'sliding window, strict, 10 buckets': slidingWindow({ limit: 10, windowMs: 1000 }),
  'sliding counter': slidingCounter({ limit: 10, windowMs: 1000 }),
  'sliding log': slidingLog({ limit: 10, windowMs: 1000 }),
  'token bucket, capacity 10': tokenBucket({ capacity: 10, refill: 10, perMs: 1000 }),
  'leaky bucket, capacity 10': leakyBucket({ capacity: 10, leak: 10, perMs: 1000 }),
  'GCRA, burst 3': gcra({ capacity: 3, rate: 10, perMs: 1000 }),
  'leaky queue, 100 ms apart, 9 wait': leakyQueue({ intervalMs: 100, queue: 9 }),
}

const stepMs = 50
const lengthMs = 8000

/** Requests in each step: a trickle, a burst across a second's edge, a flood, silence, and a burst after it. */
function arrivals(): number[] {
  return Array.from({ length: lengthMs / stepMs }, (_, step) => {
    const at = step * stepMs
    if (at >= 900 && at < 1100) return 6
    if (at >= 2500 && at < 4500) return 2
    if (at >= 4500 && at < 6200) return 0
    if (at >= 6200 && at < 6400) return 8
    return step % 4 === 0 ? 1 : 0
  })
}

/** Calls that leave in each step: when admitted, or for a pacing limit when its delay has passed. */
function leaving(spec: LimitSpec): number[] {
  let now = 1_700_000_000_000
  const start = now
  const limiter = localLimiter(spec, { clock: { now: () => now } })
  const left = arrivals().map(() => 0)
  for (const [step, count] of arrivals().entries()) {
    for (let request = 0; request < count; request++) {
      now = start + step * stepMs + Math.floor((request * stepMs) / count)
      const { allowed, delayMs } = limiter.take('k')
      const at = Math.floor((now - start + delayMs) / stepMs)
      if (allowed && at < left.length) left[at]!++
    }
  }
  return left
}

/** The picture: for each algorithm the traffic in grey and what leaves in colour, 50 ms a bar. */
function admissionPlot(): string {
  const width = 900
  const rowHeight = 62
  const chartLeft = 10
  const chartWidth = width - 2 * chartLeft
  const barWidth = chartWidth / (lengthMs / stepMs)
  const traffic = arrivals()
  const unit = 4
  const rows = Object.entries(specs).map(([name, spec], row) => {
    const left = leaving(spec)
    const base = 40 + row * rowHeight + 44
    const bar = (count: number, step: number, colour: string) =>
      count === 0
        ? ''
        : `<rect x="${(chartLeft + step * barWidth).toFixed(1)}" y="${base - count * unit}" width="${(barWidth - 0.6).toFixed(1)}" height="${count * unit}" fill="${colour}"/>`
    const total = left.reduce((sum, count) => sum + count, 0)
    return [
      `<text x="${chartLeft}" y="${base - 34}" font-weight="bold">${name}</text>`,
      `<text x="${width - chartLeft}" y="${base - 34}" text-anchor="end">${total} of ${traffic.reduce((sum, count) => sum + count, 0)}</text>`,
      ...traffic.map((count, step) => bar(count, step, '#d8d8d8')),
      ...left.map((count, step) => bar(count, step, '#c2410c')),
      `<line x1="${chartLeft}" y1="${base}" x2="${width - chartLeft}" y2="${base}" stroke="#888" stroke-width="0.5"/>`,
    ].filter((part) => part !== '')
  })
  const height = 40 + Object.keys(specs).length * rowHeight + 24
  const seconds = Array.from({ length: lengthMs / 1000 + 1 }, (_, second) => {
    const x = chartLeft + (second * 1000 * barWidth) / stepMs
    return `<line x1="${x}" y1="36" x2="${x}" y2="${height - 22}" stroke="#ccc" stroke-width="0.5" stroke-dasharray="2 3"/><text x="${x}" y="${height - 8}" text-anchor="middle">${second} s</text>`
  })
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">`,
    '<title>What each algorithm admits of the same bursty traffic</title>',
    `<rect width="${width}" height="${height}" fill="white"/>`,
    `<text x="${chartLeft}" y="20" font-size="14">The same bursty traffic (grey) and what leaves (colour), 50 ms a bar</text>`,
    ...seconds,
    ...rows.flat(),
    '</svg>',
  ].join('\n')}\n`
}

if (process.argv.includes('--print')) process.stdout.write(admissionPlot())
else writeFileSync(new URL('../../docs/guides/limits-admission.svg', import.meta.url), admissionPlot())
