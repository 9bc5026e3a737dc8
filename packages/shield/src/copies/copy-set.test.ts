import { systemRuntime } from '@firebreak/core'
import { encodeCommand } from '@firebreak/core/resp'
import { expect, test } from 'vitest'
import { readCommand } from '../cache/read-command.ts'
import { KeySpace } from '../gate/key-space.ts'
import { Trouble } from '../trouble/trouble.ts'
import { LaneLease } from '../watcher/lease.ts'
import type { TrackingWatcher } from '../watcher/tracking-watcher.ts'
import type { Upstream } from '../watcher/upstream.ts'
import { copyReadReplies } from './copy-read.ts'
import { CopySet } from './copy-set.ts'

type Answer = (reply: Uint8Array | undefined, sentAt: number) => void

/** Copies of `k` on one node, whose watcher answers when the test says so. */
function setUp() {
  const takes: Answer[] = []
  const reads: Answer[] = []
  const watcher: Partial<TrackingWatcher> & { canRead: boolean } = {
    canRead: true,
    state: 'live',
    transact: (_: number, bytes: Uint8Array, replyCount: number, handler: Answer) => {
      if (replyCount === copyReadReplies) reads.push(handler)
      else if (Buffer.from(bytes).includes('DUMP')) takes.push(handler)
    },
  }
  const copies = new CopySet(
    {
      name: 'k',
      bytes: Buffer.from('k'),
      slot: 0,
      copyReads: 0,
      readOriginal: () => false,
      space: new KeySpace('', 0, { nodeOf: () => 'n' } as unknown as Upstream),
    },
    {
      processId: 'test',
      runtime: { ...systemRuntime, clock: { now: () => 0 }, random: () => 0 },
      watchers: { at: () => watcher as TrackingWatcher },
      trouble: new Trouble(() => {}),
      guards: { leaseMs: 300, lane: new LaneLease(), fallbackTtlMs: 100 },
    },
    { strategy: 'RedundantKeys', copies: ['k_1'], ttlJitterMs: 0 },
  )
  const seen: (string | undefined)[] = []
  const read = () =>
    copies.read(readCommand('GET', ['k'], 0), (reply) =>
      seen.push(reply === undefined ? undefined : Buffer.from(reply.bytes).toString()),
    )
  return {
    copies,
    watcher,
    seen,
    read,
    /** The next picture is there, and is of this version. */
    takePicture: (version: number) =>
      takes.shift()!(Buffer.from(`*4\r\n:${version}\r\n:-1\r\n:1\r\n$4\r\ndump\r\n`), 0),
    /** The connection is lost, with what was asked on it. */
    lose: () => {
      watcher.canRead = false
      for (const answer of [...takes.splice(0), ...reads.splice(0)]) answer(undefined, 0)
    },
    /** The next read of a copy is answered. */
    answer: (version: number, value: string) => reads.shift()!(encodeCommand([`${version}|k`, value]), 0),
  }
}

test('readers get what a copy has', () => {
  const { seen, read, takePicture, answer } = setUp()
  expect([read(), read()]).toEqual([true, true])
  takePicture(1)
  answer(1, 'v')
  answer(1, 'v')
  expect(seen).toEqual(['$1\r\nv\r\n', '$1\r\nv\r\n'])
})

test('an own write sends those who wait for a picture to Redis before it', () => {
  const { copies, seen, read, takePicture } = setUp()
  read()
  copies.abandon()
  expect(seen).toEqual([undefined])
  takePicture(1)
  expect(seen).toHaveLength(1)
})

test('an own write sends those whose copy is being read to Redis before it', () => {
  const { copies, seen, read, takePicture, answer } = setUp()
  read()
  takePicture(1)
  copies.abandon()
  expect(seen).toEqual([undefined])
  answer(2, 'written behind the read')
  expect(seen).toHaveLength(1)
})

test.each(['before', 'while'])(
  'who had to ask Redis, as no node could be read %s, sees nothing older later',
  (when) => {
    const { watcher, seen, read, takePicture, answer, lose } = setUp()
    read()
    takePicture(1)
    answer(1, 'old')
    if (when === 'before') lose()
    expect(read()).toBe(when === 'while')
    if (when === 'while') lose()
    watcher.canRead = true
    read()
    takePicture(2)
    answer(2, 'new')
    expect(seen.filter((value) => value !== undefined)).toEqual(['$3\r\nold\r\n', '$3\r\nnew\r\n'])
  },
)

test('a picture that was taken before changes were missed will not do', () => {
  const { copies, seen, read, takePicture, answer } = setUp()
  read()
  copies.missed()
  takePicture(1)
  expect(seen).toEqual([])
  takePicture(2)
  answer(2, 'new')
  expect(seen).toEqual(['$3\r\nnew\r\n'])
})
