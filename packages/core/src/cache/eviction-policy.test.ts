import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BoundedCache } from './bounded-cache.ts'

const capacity = 5

/** A policy written as simply as possible: lists of keys, no slots, no fingerprints. */
interface NaivePolicy {
  insert(key: string): void
  touch(key: string): void
  remove(key: string): void
  evict(): string
}

function naiveLru(): NaivePolicy {
  const order: string[] = []
  const remove = (key: string) => void order.splice(order.indexOf(key), 1)
  return {
    insert: (key) => void order.push(key),
    touch: (key) => {
      remove(key)
      order.push(key)
    },
    remove,
    evict: () => order.shift()!,
  }
}

function naiveLfu(): NaivePolicy {
  let items: { key: string; rank: number; movedAt: number }[] = []
  let age = 0
  let time = 0
  const remove = (key: string) => {
    items = items.filter((item) => item.key !== key)
  }
  return {
    insert: (key) => void items.push({ key, rank: age + 1, movedAt: time++ }),
    touch: (key) => {
      const item = items.find((other) => other.key === key)!
      item.rank++
      item.movedAt = time++
    },
    remove,
    evict: () => {
      const victim = [...items].sort((a, b) => a.rank - b.rank || a.movedAt - b.movedAt)[0]!
      age = victim.rank
      remove(victim.key)
      return victim.key
    },
  }
}

function naiveSieve(): NaivePolicy {
  const items: { key: string; isVisited: boolean }[] = [] // oldest first
  let hand: string | undefined
  const indexOf = (key: string) => items.findIndex((item) => item.key === key)
  const remove = (key: string) => {
    const index = indexOf(key)
    if (hand === key) hand = items[index + 1]?.key
    items.splice(index, 1)
  }
  return {
    insert: (key) => void items.push({ key, isVisited: false }),
    touch: (key) => {
      items[indexOf(key)]!.isVisited = true
    },
    remove,
    evict: () => {
      let index = hand === undefined ? 0 : indexOf(hand)
      while (items[index]!.isVisited) {
        items[index]!.isVisited = false
        index = (index + 1) % items.length
      }
      const { key } = items[index]!
      hand = items[index + 1]?.key
      items.splice(index, 1)
      return key
    },
  }
}

function naiveS3Fifo(): NaivePolicy {
  const smallCapacity = Math.max(1, Math.floor(capacity / 5))
  const ghostCapacity = capacity - smallCapacity
  let small: string[] = [] // oldest first
  let main: string[] = []
  let ghost: string[] = []
  const reads = new Map<string, number>()
  return {
    insert: (key) => {
      reads.set(key, 0)
      if (ghost.includes(key)) main.push(key)
      else small.push(key)
    },
    touch: (key) => void reads.set(key, Math.min(3, reads.get(key)! + 1)),
    remove: (key) => {
      small = small.filter((other) => other !== key)
      main = main.filter((other) => other !== key)
    },
    evict: () => {
      if (small.length >= smallCapacity || main.length === 0) {
        while (small.length > 0) {
          const key = small.shift()!
          if (reads.get(key) === 0) {
            ghost = [...ghost, key].slice(-ghostCapacity)
            return key
          }
          reads.set(key, 0)
          main.push(key)
        }
      }
      for (;;) {
        const key = main.shift()!
        if (reads.get(key) === 0) return key
        reads.set(key, reads.get(key)! - 1)
        main.push(key)
      }
    },
  }
}

const models = { LRU: naiveLru, LFU: naiveLfu, SIEVE: naiveSieve, 'S3-FIFO': naiveS3Fifo } as const

const step = fc.record({
  action: fc.constantFrom('get', 'get', 'get', 'set', 'set', 'set', 'delete'),
  key: fc.constantFrom(...'abcdefghijkl'),
})

test.each(Object.keys(models) as (keyof typeof models)[])('%s keeps what its plain model keeps', (policy) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const model = models[policy]()
      const kept = new Set<string>()
      const cache = new BoundedCache<string>({ maxEntries: capacity, maxBytes: 1e9, policy })
      for (const { action, key } of steps) {
        if (action === 'get') {
          expect(cache.get(key)).toBe(kept.has(key) ? key : undefined)
          if (kept.has(key)) model.touch(key)
        } else if (action === 'delete') {
          expect(cache.delete(key)).toBe(kept.has(key))
          if (kept.delete(key)) model.remove(key)
        } else {
          if (kept.has(key)) model.touch(key)
          else {
            if (kept.size === capacity) kept.delete(model.evict())
            model.insert(key)
            kept.add(key)
          }
          cache.set(key, key, 1)
        }
        expect([...cache.keys()].sort()).toEqual([...kept].sort())
      }
    }),
    { numRuns: 300 },
  )
})
