import { expect, test } from 'vitest'
import type { CacheFile } from './cache-file.ts'
import { NodeMark } from './node-mark.ts'
import { resolveNodeOptions } from './node-options.ts'

test('the documented defaults: 3 s, 5 ms, 1 s ahead on disk, 9 s in the registry, 1,000 ms from the peers', () => {
  expect(resolveNodeOptions({ workerId: 1 })).toMatchObject({
    reportEveryMs: 3000,
    maxBackwardMs: 5,
    markAheadMs: 1000,
    registryAheadMs: 9000,
    peerThresholdMs: 1000,
    epochMs: 1_288_834_974_657,
  })
})

test('a mark that is not ahead of the next report is refused', () => {
  expect(() => resolveNodeOptions({ workerId: 1, reportEveryMs: 5000, registryAheadMs: 5000 })).toThrow(
    /registryAheadMs/,
  )
  expect(() => resolveNodeOptions({ workerId: 1, markAheadMs: 0 })).toThrow(/markAheadMs/)
})

test('a disk that refuses a mark causes an error and no id beyond the last mark; a later successful write recovers', () => {
  let isFull = false
  const written: number[] = []
  const file = {
    path: 'worker.json',
    write({ mark }: { mark: number }) {
      if (isFull) throw new Error('ENOSPC: no space left on device')
      written.push(mark)
    },
  } as unknown as CacheFile
  let nowMs = 10_000
  const options = resolveNodeOptions({ workerId: 1, cacheFile: 'worker.json', clock: { now: () => nowMs } })
  const joined = { workerId: 1, afterMs: 0, owner: '', reportedAt: 0, isConfirmed: true }
  const mark = new NodeMark(options, file, joined)
  expect(mark.untilMs).toBe(11_000)
  nowMs = 11_001
  isFull = true
  expect(() => mark.extend(nowMs)).toThrow(expect.objectContaining({ code: 'FB_IDS_MARK_REACHED' }))
  expect(mark.untilMs).toBe(11_000)
  isFull = false
  mark.extend(nowMs)
  expect(mark.untilMs).toBe(12_001)
  // Neither the mark nor the time goes back when the clock does.
  nowMs = 5000
  mark.renew(joined)
  expect(written.at(-1)).toBe(12_001)
})
