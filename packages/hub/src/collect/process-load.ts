import { performance } from 'node:perf_hooks'

/** Makes a meter that tells what part of the time since its last call this process' event loop was busy, 0 to 1. */
export function makeLoadMeter(): () => number {
  let last = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    return utilization
  }
}
