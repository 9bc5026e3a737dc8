import { fixedWindow, gcra, type LimitSpec, tokenBucket } from '@firebreak/limits'

/** The three that are measured, each admitting about `limit` in `windowMs`. */
export function measuredSpecs(limit: number, windowMs: number): Record<string, LimitSpec> {
  return {
    'fixed window': fixedWindow({ limit, windowMs }),
    'token bucket': tokenBucket({ capacity: limit, refill: limit, perMs: windowMs }),
    gcra: gcra({ capacity: limit, rate: limit, perMs: windowMs }),
  }
}

/** The smallest of several ratios, with all of them as a note. */
export function worst(ratios: Record<string, number>): { ratio: number; note: string } {
  const note = Object.entries(ratios)
    .map(([name, ratio]) => `${name} ${ratio.toFixed(1)}×`)
    .join(', ')
  return { ratio: Math.min(...Object.values(ratios)), note }
}
