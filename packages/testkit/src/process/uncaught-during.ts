/** Does some work, and returns what was thrown meanwhile where nobody could catch it. */
export async function uncaughtDuring(work: () => Promise<void>): Promise<unknown[]> {
  const thrown: unknown[] = []
  const note = (error: unknown) => thrown.push(error)
  const before = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException')
  process.on('uncaughtException', note)
  try {
    await work()
  } finally {
    process.removeListener('uncaughtException', note)
    for (const listener of before) process.on('uncaughtException', listener)
  }
  return thrown
}
