import { performance } from 'node:perf_hooks'
import type { Runtime } from '@firebreak/core'

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

/** Makes a reader of what this process uses from now on; how busy it was is since the last call that was a second ago or more. */
export function processUsage({ clock, wallClock }: Pick<Runtime, 'clock' | 'wallClock'>): () => {
  readonly startedAt: number
  readonly memoryBytes: number
  readonly busy: number
} {
  const loadOf = makeLoadMeter()
  const startedAt = Math.round(wallClock.now())
  let busy = 0
  let readAt = Number.NEGATIVE_INFINITY
  return () => {
    const now = clock.now()
    if (now - readAt >= 1000) {
      busy = loadOf()
      readAt = now
    }
    return { startedAt, memoryBytes: process.memoryUsage.rss(), busy: Math.round(busy * 1000) / 1000 }
  }
}
