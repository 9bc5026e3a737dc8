import { performance } from 'node:perf_hooks'

/** Makes a meter of the fraction of time, 0 to 1, for which this process' event loop was busy since the last call. */
export function makeLoadMeter(): () => number {
  let last = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    return utilization
  }
}
