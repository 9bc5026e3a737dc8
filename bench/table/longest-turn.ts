/**
 * The longest turn of the event loop while `work` runs, in milliseconds of this thread's own CPU time: what a machine that
 * is busy elsewhere adds to wall time is not in it, and what an application would have had to wait for is.
 */
export async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
  let longest = 0
  let isOver = false
  let before = cpuMs()
  const turn = () => {
    const now = cpuMs()
    longest = Math.max(longest, now - before)
    before = now
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  await work()
  isOver = true
  return longest
}

/** CPU time of this thread so far. */
export function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
