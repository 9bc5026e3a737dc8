/** The settings of the server's access counter: `lfu-log-factor` and `lfu-decay-time`. */
export interface LfuSettings {
  /** @default 10 */
  readonly logFactor: number
  /** Minutes after which the counter loses one; 0 means never. @default 1 */
  readonly decayMinutes: number
}

export const defaultLfuSettings: LfuSettings = { logFactor: 10, decayMinutes: 1 }

/** An estimate, and its standard error relative to it. */
export interface RateEstimate {
  readonly accessesPerSecond: number
  readonly relativeError: number
}

/** Keys start with this, so that new ones are not evicted at once. */
const initialCounter = 5
const largestCounter = 255

/**
 * Accesses per second from the logarithmic counter that an LFU server keeps for each key.
 *
 * An access increments the counter c with probability 1 / (x·f + 1), where x = c − 5 (not below 0) and f is
 * `lfu-log-factor`; every d minutes it loses one. So at r accesses per minute
 *
 *     dc/dt = r / (x·f + 1) − 1/d      and      r = (x·f + 1) · (dc/dt + 1/d).
 *
 * For a key whose heat has been constant for long, dc/dt = 0, and the counter alone gives r. It fluctuates around that
 * level: increments are random with rate 1/d, and deviations are pulled back at f / ((x·f + 1)·d) per step, which gives
 * a variance of (x·f + 1) / 2f and for r a relative error of √(f / (2·(x·f + 1))).
 *
 * That level is approached slowly, though, with a time constant of d·(x·f + 1)/f minutes: a key that has just become
 * hot is far below it, and the counter alone would give a hundredth of the truth. So the counter is read twice: if it
 * grew by n in between, dc/dt is measured, with an error of 1/√n (increments are counted events). At 255 the counter is
 * full: the rate is then a lower bound, with an infinite error.
 */
export function estimateAccessRate(
  counter: number,
  settings: LfuSettings = defaultLfuSettings,
  growth: { readonly steps: number; readonly seconds: number } = { steps: 0, seconds: 0 },
): RateEstimate {
  const { logFactor, decayMinutes } = settings
  const accessesPerStep = Math.max(0, counter - initialCounter) * logFactor + 1
  const decayPerSecond = decayMinutes > 0 ? 1 / (decayMinutes * 60) : 0
  const hasGrown = growth.steps >= 2 && growth.seconds > 0
  const growthPerSecond = hasGrown ? growth.steps / growth.seconds : 0
  const accessesPerSecond = accessesPerStep * (growthPerSecond + decayPerSecond)
  if (counter >= largestCounter) return { accessesPerSecond, relativeError: Number.POSITIVE_INFINITY }
  if (hasGrown) return { accessesPerSecond, relativeError: 1 / Math.sqrt(growth.steps) }
  if (decayPerSecond === 0 || counter <= initialCounter) return { accessesPerSecond, relativeError: 1 }
  return { accessesPerSecond, relativeError: Math.sqrt(logFactor / (2 * accessesPerStep)) }
}
