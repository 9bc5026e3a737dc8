import type { Report } from '@firebreak/core'
import { expect, test } from 'vitest'
import { ReportQueue } from './report-queue.ts'

function report(collectTs: number, entryCount = 1): Report {
  const entries = Array.from({ length: entryCount }, (_, index) => ({
    key: `k${index}`,
    count: 1,
    writes: 0,
    bytes: 0,
  }))
  return {
    collectTs,
    sendTs: collectTs,
    serviceId: 's',
    hostId: 'h',
    instanceId: 'i',
    sections: [{ redisClusterId: 'main', entries }],
  }
}

test('a full queue drops its oldest report and counts it', () => {
  const queue = new ReportQueue(2, 1000)
  for (let time = 1; time <= 5; time++) queue.push(report(time))
  expect(queue.dropped).toBe(3)
  expect([queue.shift()?.collectTs, queue.shift()?.collectTs, queue.shift()]).toEqual([4, 5, undefined])
})

test('entries are bounded over all reports; a single one that is larger is kept', () => {
  const queue = new ReportQueue(100, 10)
  queue.push(report(1, 6))
  queue.push(report(2, 6))
  expect([queue.length, queue.dropped]).toEqual([1, 1])
  queue.push(report(3, 50))
  expect([queue.length, queue.dropped, queue.peek()?.collectTs]).toEqual([1, 2, 3])
})
