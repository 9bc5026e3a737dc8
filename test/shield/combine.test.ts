import { type CombineListener, type CombineOutcome, CombineOwner, type CombinePart, Combining } from '@firebreak/shield'
import { beforeEach, expect, test } from 'vitest'
import { handle, hotKey, openShield, type TestShield } from './gate-adapters.ts'

/** The commands that were sent, and those that wait for an answer. */
interface Sent {
  readonly words: string
  readonly listener: CombineListener
}

let open: TestShield
let sent: Sent[]
let deferred: (() => void)[]
let combining: Combining
let now: number

beforeEach(async () => {
  open = await openShield()
  handle(open.cluster, { strategy: 'Combine', maxCombined: 4 })
  sent = []
  deferred = []
  now = 0
  const way = {
    send: (words: readonly (string | Uint8Array)[], _: unknown, listener: CombineListener) =>
      void sent.push({ words: textOf(words), listener }),
    defer: (callback: () => void) => void deferred.push(callback),
  }
  combining = new Combining(way, () => now)
})

const textOf = (words: readonly (string | Uint8Array)[]) => words.map((word) => Buffer.from(word).toString()).join(' ')
const hot = () => open.cluster.space(0).hot.get(hotKey)!

/** An increment by somebody; its answer is recorded. */
function add(name: 'INCR' | 'INCRBY' | 'DECR' | 'DECRBY', amount: number, owner = new CombineOwner()) {
  const told: string[] = []
  const part: CombinePart = {
    owner,
    command: { name, amount, fieldAt: 0 },
    answer: (reply) => void told.push(reply.toString().trim()),
    fail: (reason) => void told.push(String(reason)),
    sendAlone: (words, listener) => {
      sent.push({
        words: textOf(words),
        listener: (outcome) => {
          listener(outcome)
          told.push(outcome.kind === 'value' ? `:${outcome.value}` : outcome.kind)
        },
      })
    },
  }
  combining.join(hot(), undefined, part)
  return told
}

/** Answers the command that was sent first. */
function answer(outcome: CombineOutcome | number | bigint): void {
  sent.shift()!.listener(typeof outcome === 'object' ? outcome : { kind: 'value', value: outcome })
}

const turnEnds = () => {
  for (const callback of deferred.splice(0)) callback()
}

const words = () => sent.map((one) => one.words)

/** Redis has allowed all four commands, and the counter is 10. */
function prove(): void {
  for (const [name, amount] of [
    ['INCR', 1],
    ['INCRBY', 2],
    ['DECR', -1],
    ['DECRBY', -2],
  ] as const) {
    add(name, amount)
    answer(10)
  }
}

test('the first increment goes alone; later ones wait for its answer and go together', () => {
  const first = add('INCR', 1)
  const others = [add('INCR', 1), add('INCR', 1)]
  expect(words()).toEqual(['INCR hot'])
  answer(5)
  expect(words()).toEqual(['INCRBY hot 2'])
  answer(9)
  expect([first, ...others]).toEqual([[':5'], [':8'], [':9']])
})

test('increments and decrements are two commands, and those of one owner keep their order', () => {
  prove()
  const owner = new CombineOwner()
  const told = [add('INCR', 1), add('DECRBY', -5), add('INCRBY', 7), add('DECR', -1)]
  turnEnds()
  expect(words()).toEqual(['INCRBY hot 8', 'DECRBY hot 6'])
  answer(18)
  answer(12)
  expect(told).toEqual([[':11'], [':13'], [':18'], [':12']])
  add('INCR', 1, owner)
  add('DECR', -1, owner)
  turnEnds()
  expect(words()).toEqual(['INCR hot'])
  answer(13)
  expect(words()).toEqual(['DECR hot'])
})

test('a refused sum is sent again in parts, and uncombined for a while; each caller gets its own answer', () => {
  prove()
  const told = [add('INCR', 1), add('INCRBY', 5)]
  turnEnds()
  answer({ kind: 'refused' })
  expect(words()).toEqual(['INCR hot', 'INCRBY hot 5'])
  answer(11)
  answer({ kind: 'refused' })
  expect(told).toEqual([[':11'], ['refused']])
  for (let index = 0; index < 3; index++) add('INCR', 1)
  expect(words()).toEqual(['INCR hot', 'INCR hot', 'INCR hot'])
})

test('a lost sum fails all its parts, and nothing is sent again', () => {
  prove()
  const told = [add('INCR', 1), add('INCR', 1), add('INCR', 1)]
  turnEnds()
  answer({ kind: 'lost', reason: 'gone' })
  expect(told).toEqual([['gone'], ['gone'], ['gone']])
  expect(words()).toEqual([])
})

test('a permission is checked again after a while', () => {
  prove()
  now = 6000
  add('INCR', 1)
  add('INCR', 1)
  turnEnds()
  expect(words()).toEqual(['INCR hot'])
})

test('counters that are too large, and sums that would be, are sent in parts', () => {
  prove()
  add('INCRBY', 2 ** 52)
  add('INCRBY', 2 ** 52)
  expect(words()).toEqual(['INCRBY hot 4503599627370496'])
  answer(2n ** 62n)
  expect(words()).toEqual(['INCRBY hot 4503599627370496'])
  answer(2n ** 62n)
  for (let index = 0; index < 2; index++) add('INCR', 1)
  expect(words()).toEqual(['INCR hot', 'INCR hot'])
})

test('if somebody has moved the counter beyond what numbers hold, each caller still gets its exact value', () => {
  prove()
  const told = [add('INCR', 1), add('INCR', 1)]
  turnEnds()
  answer(2n ** 60n + 1n)
  expect(told).toEqual([[':1152921504606846976'], [':1152921504606846977']])
})

test('no more are combined than the strategy allows, and waiting ones are sent when the strategy ends', () => {
  prove()
  for (let index = 0; index < 5; index++) add('INCR', 1)
  expect(words()).toEqual(['INCRBY hot 4'])
  handle(open.cluster, undefined)
  expect(words()).toEqual(['INCRBY hot 4', 'INCR hot'])
})

test('waiting increments are sent when the kill switch is used', () => {
  prove()
  add('INCR', 1)
  expect(words()).toEqual([])
  open.cluster.isActive = false
  expect(words()).toEqual(['INCR hot'])
})

test('a command on the same key waits for a sum that its owner has a part in; one on another key does not', () => {
  prove()
  const owner = new CombineOwner()
  add('INCR', 1, owner)
  add('INCR', 1)
  expect(owner.settle(undefined)).toBe(true)
  expect(words()).toEqual(['INCRBY hot 2'])
  expect([owner.settle(undefined), owner.settle(hot()), owner.settle(undefined, true)]).toEqual([true, false, false])
  answer(12)
  expect([owner.isOpen, owner.settle(hot())]).toEqual([false, true])
  // Waiting increments are sent on their own, and the command right after them.
  add('INCR', 1, owner)
  add('INCR', 1)
  expect(owner.settle(hot())).toBe(true)
  expect(words()).toEqual(['INCR hot'])
})
