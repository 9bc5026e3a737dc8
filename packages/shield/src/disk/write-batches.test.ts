import type { RootDatabase } from 'lmdb'
import { expect, test } from 'vitest'
import { WriteBatches } from './write-batches.ts'

/** Like LMDB: a method that cannot be assigned, and a commit that is reported before the thread has ended. */
class FakeThread {
  readonly told: ((status: number) => unknown)[] = []
}
Object.defineProperty(FakeThread.prototype, 'startWriting', {
  value(this: FakeThread, _instructions: unknown, onStatus: (status: number) => unknown) {
    this.told.push(onStatus)
  },
})

test('the end waits until the thread has released the last batch, not only until its writes are committed', async () => {
  const thread = new FakeThread() as FakeThread & { startWriting(at: number, onStatus: (status: number) => void): void }
  const committed = Promise.resolve(true)
  const batches = new WriteBatches({ env: thread, committed } as unknown as RootDatabase<Buffer, string>)
  await batches.allDone()
  const heard: number[] = []
  for (const at of [1, 2]) thread.startWriting(at, (status) => heard.push(status))
  let isDone = false
  const done = batches.allDone().then(() => (isDone = true))
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  thread.told[0]!(1)
  thread.told[0]!(0)
  thread.told[1]!(2)
  await turn()
  expect(isDone).toBe(false)
  thread.told[1]!(28)
  await done
  expect(heard).toEqual([1, 0, 2, 28])
})
