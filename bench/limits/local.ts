import { steadyClock } from '@firebreak/core'
import { localLimiter, turnClock } from '@firebreak/limits'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { type Bench, interleaved, medianRatio, rounds, say } from '../harness/bench.ts'
import { workMs } from '../harness/work-time.ts'
import { measuredSpecs, worst } from './specs.ts'
import { perSecond } from './speed.ts'

const keys = Array.from({ length: 10_000 }, (_, index) => `user:${index}`)
const hourMs = 3_600_000
/** `--every-reading` measures without the clock that is read once in a burst. */
const clock = process.argv.includes('--every-reading') ? steadyClock : turnClock

/** In process, against rate-limiter-flexible's memory limiter: calls a second over 10,000 keys, and bytes a key. */
export async function benchLocal(bench: Bench): Promise<void> {
  await compare(bench, 'local-allow-vs-rlf', 1_000_000)
  await compare(bench, 'local-deny-vs-rlf', 1)
  const bytes: Record<string, number> = {}
  for (const [name, spec] of Object.entries(measuredSpecs(100, hourMs))) bytes[name] = bytesPerKey(spec)
  bench.report({
    id: 'local-bytes-per-key',
    value: Math.max(...Object.values(bytes)),
    unit: 'bytes',
    note: `${Object.entries(bytes)
      .map(([name, value]) => `${name} ${value.toFixed(0)}`)
      .join(', ')}; 200,000 keys such as user:123456, their text included`,
  })
}

async function compare(bench: Bench, id: string, limit: number): Promise<void> {
  const ratios: Record<string, number> = {}
  const calls = rounds(50_000, 300_000)
  for (const [name, spec] of Object.entries(measuredSpecs(limit, hourMs))) {
    const ours = localLimiter(spec, { clock })
    const theirs = new RateLimiterMemory({ points: limit, duration: hourMs / 1000 })
    // Every key exists, and with the limit 1 is used up.
    for (const key of keys) {
      ours.take(key)
      await theirs.consume(key)
    }
    const isAllowed = limit > 1
    const contestants = {
      ours: () => {
        const start = workMs()
        let allowed = 0
        for (let call = 0; call < calls; call++) if (ours.take(keys[call % keys.length]!).allowed) allowed++
        checkAllowed(allowed, isAllowed ? calls : 0)
        return calls / (workMs() - start)
      },
      theirs: async () => {
        const start = workMs()
        let allowed = 0
        for (let call = 0; call < calls; call++) {
          try {
            await theirs.consume(keys[call % keys.length]!)
            allowed++
          } catch {
            // Denied.
          }
        }
        checkAllowed(allowed, isAllowed ? calls : 0)
        return calls / (workMs() - start)
      },
    }
    // Once untimed, so that no round is spent on compiling.
    await interleaved(1, contestants)
    const speeds = await interleaved(rounds(13, 25), contestants)
    ratios[name] = medianRatio(speeds.ours, speeds.theirs)
    say(`${id} ${name}: ${perSecond(speeds.ours)} to ${perSecond(speeds.theirs)} calls/s`)
  }
  const { ratio, note } = worst(ratios)
  bench.report({ id, ratio, of: 'localLimiter', to: 'RateLimiterMemory', note })
}

function checkAllowed(allowed: number, expected: number): void {
  if (allowed !== expected) throw new Error(`${allowed} calls were admitted, ${expected} should have been`)
}

/** Memory that 200,000 used keys take, in the heap and in typed arrays. */
function bytesPerKey(spec: Parameters<typeof localLimiter>[0]): number {
  const count = 200_000
  const limiter = localLimiter(spec, { maxKeys: 1_000_000 })
  limiter.take('warm')
  const before = used()
  for (let index = 0; index < count; index++) limiter.take(`user:${100_000 + index}`)
  const after = used()
  if (limiter.size !== count + 1) throw new Error(`${limiter.size} keys are held`)
  return (after - before) / count
}

function used(): number {
  for (let round = 0; round < 3; round++) globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
