import fc from 'fast-check'
import { expect, test } from 'vitest'
import { EventQueue, type QueuedEvent } from './event-queue.ts'

test('events come out by time and order, without cancelled ones, as from a sorted list', () => {
  const step = fc.record({ atMs: fc.nat(20), cancels: fc.option(fc.nat(500)), takes: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 500 }), (steps) => {
      const queue = new EventQueue()
      let list: QueuedEvent[] = []
      const all: QueuedEvent[] = []
      const nextOfList = (): QueuedEvent | undefined => {
        list.sort((a, b) => a.atMs - b.atMs || a.order - b.order)
        return list.shift()
      }
      for (const { atMs, cancels, takes } of steps) {
        const event = queue.add(atMs, () => {})
        list.push(event)
        all.push(event)
        if (cancels !== null) {
          const cancelled = all[cancels % all.length]!
          queue.cancel(cancelled)
          list = list.filter((other) => other !== cancelled)
        }
        if (takes) expect(queue.take()).toBe(nextOfList())
        expect(queue.size).toBe(list.length)
      }
      while (list.length > 0) expect(queue.take()).toBe(nextOfList())
      expect(queue.take()).toBe(undefined)
    }),
  )
})

test('cancelled deadlines do not accumulate', () => {
  const queue = new EventQueue()
  for (let index = 0; index < 10_000; index++) queue.cancel(queue.add(1000 + index, () => {}))
  expect(queue.size).toBe(0)
  expect(queue.held).toBeLessThan(200)
})
