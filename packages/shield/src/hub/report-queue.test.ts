import { expect, test } from 'vitest'
import { type PendingReport, SectionWriter } from './pending-report.ts'
import { ReportQueue } from './report-queue.ts'

function report(collectTs: number, entryCount = 1): PendingReport {
  const section = new SectionWriter()
  for (let index = 0; index < entryCount; index++) section.add(`k${index}`, 1, 0, 0)
  return { collectTs, sections: [section.finish('main', entryCount)] }
}

test('a full queue drops its oldest report and counts it, including reports that were taken out', () => {
  const queue = new ReportQueue(2, 1000)
  for (let time = 1; time <= 5; time++) queue.push(report(time))
  expect([queue.dropped, queue.taken]).toEqual([3, 0])
  expect([queue.shift()?.collectTs, queue.shift()?.collectTs, queue.shift()]).toEqual([4, 5, undefined])
  expect([queue.dropped, queue.taken]).toEqual([3, 2])
})

test('entries are bounded over all reports; a single one that is larger is kept', () => {
  const queue = new ReportQueue(100, 10)
  queue.push(report(1, 6))
  queue.push(report(2, 6))
  expect([queue.length, queue.dropped]).toEqual([1, 1])
  queue.push(report(3, 50))
  expect([queue.length, queue.dropped, queue.peek()?.collectTs]).toEqual([1, 2, 3])
})
