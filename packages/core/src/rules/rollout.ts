import type { FieldReader } from './field-reader.ts'

/** The fraction of the processes that a rule applies to. */
export interface RuleRollout {
  /** 0 to 100; the other processes leave its keys alone. */
  readonly percent: number
  /** The percentages to which the hub raises it one by one, as long as nothing goes wrong. @default no change */
  readonly steps?: readonly number[]
  /** How long each step is watched before the next. @default 600000 */
  readonly stepMs?: number
  /** Why the hub stopped it; it stays at 0 until a user raises it. */
  readonly stopped?: string
}

export const defaultStepMs = 600_000

/**
 * True if a process has the rule. The choice is made by a hash of the rule and the process, so that it stays the same
 * while the process lives, grows with the percentage without dropping anybody, and differs from rule to rule: FNV-1a of
 * 32 bits over the UTF-8 bytes of `rule`, a zero byte and `instance`, with its bits mixed once more, modulo 100, is
 * below `percent`.
 */
export function isInRollout(ruleId: string, percent: number, instanceId: string): boolean {
  let hash = 0x811c9dc5
  for (const byte of encoder.encode(`${ruleId}\u0000${instanceId}`)) hash = Math.imul(hash ^ byte, 0x01000193)
  // FNV's last bytes barely change the low bits: names that end in a number would fall side by side.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash ^= hash >>> 13
  return (hash >>> 0) % 100 < percent
}

const encoder = new TextEncoder()

/** A bare number is the percentage. */
export function readRollout(fields: FieldReader, inner: (value: unknown) => FieldReader): RuleRollout | undefined {
  const given = fields.raw('rollout')
  if (given === undefined || given === null) return undefined
  const reader = inner(typeof given === 'number' ? { percent: given } : given)
  const whole = { min: 0, max: 100, isInteger: true }
  const percent = reader.number('percent', whole, undefined)
  if (percent === undefined) return reader.fail('percent', 'rollout.percent is missing: 0 to 100')
  const steps = reader.list('steps')
  const stepMs = reader.number('stepMs', { min: 1000, max: 86_400_000, isInteger: true }, undefined)
  const stopped = reader.text('stopped', undefined)
  const isRising = steps?.every((step, index) => {
    const isWhole = Number.isInteger(step) && (step as number) > 0 && (step as number) <= 100
    return isWhole && (index === 0 || (step as number) > (steps[index - 1] as number))
  })
  if (isRising === false) reader.fail('steps', 'rollout.steps must be ascending whole numbers, up to 100')
  reader.end()
  return {
    percent,
    ...(steps !== undefined && { steps: steps as number[] }),
    ...(stepMs !== undefined && { stepMs }),
    ...(stopped !== undefined && { stopped }),
  }
}
