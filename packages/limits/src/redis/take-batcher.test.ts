import { systemRuntime } from '@firebreak/core'
import { expect, test } from 'vitest'
import { fixedWindow } from '../spec/specs.ts'
import { redisPlan } from './redis-plan.ts'
import { TakeBatcher } from './take-batcher.ts'

/** A batcher whose script calls are answered by hand: each admits all its calls. */
function batcherByHand() {
  const sizes: number[] = []
  const replies: (() => void)[] = []
  const plan = redisPlan(fixedWindow({ limit: 1_000_000, windowMs: 1000, anchor: 'epoch' }))
  const batcher = new TakeBatcher({
    plan,
    runtime: systemRuntime,
    sharesCalls: true,
    awakeMs: 0,
    redisKeys: (key) => [key],
    run: (_script, _keys, args, done) => {
      const calls = (args[1] as number | undefined) ?? 1
      sizes.push(calls)
      replies.push(() => done([calls, 0, 0, 0]))
    },
    answered: () => {},
    fallback: () => {
      throw new Error('nothing fails here')
    },
  })
  return { batcher, sizes, reply: () => replies.shift()!() }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

test('half of a crowd has asked again before the other half is answered', async () => {
  const { batcher, sizes, reply } = batcherByHand()
  let answered = 0
  const caller = async () => {
    for (;;) {
      await batcher.take('hot', 1, '')
      answered++
    }
  }
  for (let index = 0; index < 100; index++) void caller()
  await turn()
  expect(sizes).toEqual([100])

  reply()
  await new Promise<void>((resolve) => process.nextTick(() => queueMicrotask(() => process.nextTick(resolve))))
  expect({ answered, sizes }).toEqual({ answered: 50, sizes: [100, 50] })
  await turn()
  await turn()
  expect({ answered, sizes }).toEqual({ answered: 100, sizes: [100, 50, 50] })

  // While the other half is in flight, the callers of a reply are answered all at once.
  reply()
  await turn()
  expect({ answered, sizes }).toEqual({ answered: 150, sizes: [100, 50, 50, 50] })
})

test('a few callers are answered all at once', async () => {
  const { batcher, sizes, reply } = batcherByHand()
  const answers = Array.from({ length: 20 }, () => batcher.take('warm', 1, ''))
  await turn()
  expect(sizes).toEqual([20])
  reply()
  expect((await Promise.all(answers)).every(({ allowed }) => allowed)).toBe(true)
})
