const isCpu = process.argv.includes('--cpu')

/**
 * Milliseconds for speeds: of the clock, or with `--cpu` of the CPU time that this process has had. A comparison of two
 * trees takes the latter, which a busy machine lengthens by a few per cent instead of several times.
 */
export function workMs(): number {
  if (!isCpu) return performance.now()
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
