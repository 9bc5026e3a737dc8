import { workMs } from '../harness/work-time.ts'
/** One call; true where it was admitted. */
export type Take = (call: number) => Promise<boolean>

/** Calls a millisecond with so many callers, each making its next call when it has its answer; all must be admitted. */
export async function speedOf(calls: number, take: Take, callers = 100): Promise<number> {
  const start = workMs()
  const admitted = await admittedOf(calls, take, callers)
  if (admitted !== calls) throw new Error(`${admitted} of ${calls} calls were admitted`)
  return calls / (workMs() - start)
}

/** How many of so many calls were admitted. */
export async function admittedOf(calls: number, take: Take, callers = 100): Promise<number> {
  let next = 0
  let admitted = 0
  const caller = async () => {
    while (next < calls) if (await take(next++)) admitted++
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return admitted
}

/** The best of several speeds, for people. */
export function perSecond(speeds: readonly number[]): string {
  return Math.round(Math.max(...speeds) * 1000).toLocaleString('en-US')
}
