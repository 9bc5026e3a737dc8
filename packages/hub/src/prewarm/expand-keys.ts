import { ApiProblem } from '../errors.ts'

const rangePattern = /^(.*?)(\d+)\.\.(\d+)(.*)$/
const maxKeys = 10_000

/** Expands keys in the form that users write: `product_100..120` is twenty-one keys; leading zeros are kept. */
export function expandKeys(given: readonly string[]): string[] {
  const keys = given.flatMap((text) => {
    const match = text.match(rangePattern)
    if (match === null) return [text]
    const [, before, first, last, after] = match as unknown as [string, string, string, string, string]
    const from = Number(first)
    const to = Number(last)
    if (to < from || to - from >= maxKeys) {
      throw new ApiProblem(400, 'FB_PREWARM_INVALID', `keys: ${text} is not a range of at most ${maxKeys} keys`, 'keys')
    }
    return Array.from(
      { length: to - from + 1 },
      (_, index) => `${before}${String(from + index).padStart(first.length, '0')}${after}`,
    )
  })
  if (keys.length > maxKeys)
    throw new ApiProblem(400, 'FB_PREWARM_INVALID', `keys: ${keys.length} keys are more than ${maxKeys}`, 'keys')
  return keys
}

const clockPattern = /^([01]?\d|2[0-3]):([0-5]\d)$/

/** When something is to happen: `19:58` (the next time it is that late here), or an ISO date; in milliseconds. */
export function parseAt(text: string, nowMs: number): number {
  const clock = text.match(clockPattern)
  if (clock !== null) {
    const at = new Date(nowMs)
    at.setHours(Number(clock[1]), Number(clock[2]), 0, 0)
    return at.getTime() > nowMs ? at.getTime() : new Date(at).setDate(at.getDate() + 1)
  }
  const at = Date.parse(text)
  if (Number.isNaN(at))
    throw new ApiProblem(
      400,
      'FB_PREWARM_INVALID',
      `at: "${text}" is neither a time such as 19:58 nor an ISO date`,
      'at',
    )
  return at
}
