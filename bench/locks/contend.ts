import type { Take } from './contestants.ts'

/*
 * What is measured: a lock is taken, so many tasks come to wait for it, and then it goes from one to the next, each
 * holding it for 1 ms and coming back no more. A hand-off is the time from the start of a release to the moment when
 * the next holder has the lock. The tasks arrive spread over some 20 ms, so that pollers do not poll in step.
 *
 * Tasks that come back at once (`contendReturning`) are measured too, under ids of their own. There the mean of a lock
 * that polls is mostly not a hand-off: the releasing task, already running, takes it again before any waiter looks. The
 * benchmark prints how often; the ratio is much nearer to 1 for that reason, and the other nineteen tasks wait.
 */

/** One time in the lock, in milliseconds of the machine's steady clock, which all processes share. */
export type Stay = readonly [acquiredAt: number, releasedAt: number]

function now(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** So many tasks take one lock once each and hold it for 1 ms. */
export async function contend(take: Take, name: string, waiters: number): Promise<Stay[]> {
  const stays: Stay[] = []
  const task = async (arrivesAfterMs: number) => {
    await pause(arrivesAfterMs)
    const release = await take(name)
    const acquiredAt = now()
    await pause(1)
    stays.push([acquiredAt, now()])
    await release()
  }
  await Promise.all(Array.from({ length: waiters }, () => task(Math.random() * 20)))
  return stays
}

/** The other way to contend: tasks that come back at once, until the time is over. Gives who had each stay, too. */
export async function contendReturning(
  take: Take,
  name: string,
  waiters: number,
  durationMs: number,
): Promise<{ stays: Stay[]; sameTask: number }> {
  const stays: Stay[] = []
  const end = now() + durationMs
  let last = -1
  let sameTask = 0
  const task = async (id: number) => {
    while (now() < end) {
      const release = await take(name)
      const acquiredAt = now()
      if (last === id) sameTask++
      last = id
      await pause(1)
      stays.push([acquiredAt, now()])
      await release()
    }
  }
  await Promise.all(Array.from({ length: waiters }, (_, id) => task(id)))
  return { stays, sameTask }
}

/** The times from each release to the next holder; throws where two ever overlapped. */
export function handoffs(stays: readonly Stay[]): number[] {
  const inOrder = [...stays].sort((a, b) => a[0] - b[0])
  const gaps: number[] = []
  for (let index = 1; index < inOrder.length; index++) gaps.push(inOrder[index]![0] - inOrder[index - 1]![1])
  if (gaps.some((gapMs) => gapMs < 0)) throw new Error('two held the lock at once')
  return gaps
}
