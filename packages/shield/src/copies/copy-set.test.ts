import { encodeCommand } from '@firebreak/core/resp'
import { FakeClock, fakeRuntime } from '@firebreak/testkit'
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

/** Copies of `k` on one node, whose watcher answers when the test tells it to. */
function setUp() {
  const clock = new FakeClock()
  const takes: Answer[] = []
  const reads: Answer[] = []
  const puts: Answer[] = []
  const looks: Answer[] = []
  const resignations: Answer[] = []
  let removals = 0
  let hasCopyAgain = false
  const watcher: Partial<TrackingWatcher> & { canRead: boolean } = {
    canRead: true,
    state: 'live',
    transact: (_: number, bytes: Uint8Array, replyCount: number, handler: Answer) => {
      if (replyCount === copyReadReplies) reads.push(handler)
      else if (Buffer.from(bytes).includes('DUMP')) takes.push(handler)
      else if (Buffer.from(bytes).includes('RESTORE')) puts.push(handler)
      else if (Buffer.from(bytes).includes('UNLINK')) removals++
      else if (Buffer.from(bytes).includes('Lets another process take over')) resignations.push(handler)
      else if (Buffer.from(bytes).equals(encodeCommand(['GET', '{k_1}:firebreak-owner']))) looks.push(handler)
    },
  }
  const space = new KeySpace('', 0, { nodeOf: () => 'n' } as unknown as Upstream)
  const copies = new CopySet(
    {
      name: 'k',
      bytes: Buffer.from('k'),
      slot: 0,
      copyReads: 0,
      hasCopy: () => hasCopyAgain,
      readOriginal: () => false,
      space,
    },
    {
      processId: 'test',
      runtime: { ...fakeRuntime(1, clock), random: () => 0 },
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
    clock,
    watcher,
    /** The keys that KEYS would show to the application. */
    isShown: () => !space.ownCopies.has(Buffer.from('k_1')),
    seen,
    read,
    /** The next snapshot has arrived, with this version. */
    takePicture: (version: number) =>
      takes.shift()!(Buffer.from(`*4\r\n:${version}\r\n:-1\r\n:1\r\n$4\r\ndump\r\n`), 0),
    /** The connection is lost, with all requests on it. */
    lose: () => {
      watcher.canRead = false
      for (const answer of [...takes.splice(0), ...reads.splice(0), ...puts.splice(0)]) answer(undefined, 0)
    },
    /** The server answers the previous put. */
    answerPut: (said: string) => puts.shift()!(encodeCommand([said]).subarray(4), 0),
    /** The server says who owns the copy; false if nobody asked. */
    answerLook: (owner: string) => {
      const asked = looks.splice(0)
      for (const answer of asked) answer(encodeCommand([owner]).subarray(4), 0)
      return asked.length > 0
    },
    /** The server says whether another process follows the key, as this one leaves it. */
    answerResignation: (isFollowed: boolean) => resignations.shift()!(Buffer.from(`:${isFollowed ? 1 : 0}\r\n`), 0),
    removals: () => removals,
    resignations: () => resignations.length,
    /** The key has become hot again, and has a copy of the same name. */
    heatAgain: () => (hasCopyAgain = true),
    /** Answers the next read of a copy. */
    answer: (version: number, value: string) => reads.shift()!(encodeCommand([`${version}|k`, value]), 0),
  }
}

test('readers get the value of a copy', () => {
  const { seen, read, takePicture, answer } = setUp()
  expect([read(), read()]).toEqual([true, true])
  takePicture(1)
  answer(1, 'v')
  answer(1, 'v')
  expect(seen).toEqual(['$1\r\nv\r\n', '$1\r\nv\r\n'])
})

test('an own write sends readers that wait for a snapshot to Redis before it', () => {
  const { copies, seen, read, takePicture } = setUp()
  read()
  copies.abandon()
  expect(seen).toEqual([undefined])
  takePicture(1)
  expect(seen).toHaveLength(1)
})

test('an own write sends readers whose copy is being read to Redis before it', () => {
  const { copies, seen, read, takePicture, answer } = setUp()
  read()
  takePicture(1)
  copies.abandon()
  expect(seen).toEqual([undefined])
  answer(2, 'written behind the read')
  expect(seen).toHaveLength(1)
})

test.each(['before', 'while'])(
  'a reader that had to ask Redis, because no node could be read %s, sees nothing older later',
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

test('a snapshot from before changes were missed is not used', () => {
  const { copies, seen, read, takePicture, answer } = setUp()
  read()
  copies.missed()
  takePicture(1)
  expect(seen).toEqual([])
  takePicture(2)
  answer(2, 'new')
  expect(seen).toEqual(['$3\r\nnew\r\n'])
})

test.each([
  ['a copy', 0],
  ['a picture, behind a copy that was too old', 250],
])('a reader that waits for %s asks Redis after a lease, however many rounds add up', (_, firstMs) => {
  const { clock, seen, read, takePicture, answer } = setUp()
  read()
  takePicture(2)
  answer(2, 'new')
  seen.length = 0
  read()
  // The first round: a copy of an older version arrives late, and a new snapshot is taken for it.
  if (firstMs > 0) {
    clock.advance(firstMs)
    answer(1, 'old')
  }
  clock.advance(299 - firstMs)
  expect(seen).toEqual([])
  clock.advance(1)
  expect(seen).toEqual([undefined])
})

test('each reader waits for its own lease, even if others came before', () => {
  const { clock, seen, read, takePicture, answer } = setUp()
  read()
  clock.advance(200)
  read()
  takePicture(1)
  answer(1, 'first')
  clock.advance(299)
  expect(seen).toEqual(['$5\r\nfirst\r\n'])
  clock.advance(1)
  expect(seen).toEqual(['$5\r\nfirst\r\n', undefined])
})

test('a copy that another process wrote, because this one’s put was lost, is recognised as ours', () => {
  const { copies, watcher, read, takePicture, lose, answerLook } = setUp()
  read()
  takePicture(1)
  lose()
  expect(copies.writtenNames).toEqual([])
  watcher.canRead = true
  copies.tick()
  expect(answerLook('k')).toBe(true)
  expect(copies.writtenNames).toEqual(['k_1'])
  copies.tick()
  expect(answerLook('k')).toBe(false)
})

test('a name that was a key of the application is read once it has become a copy', () => {
  const { copies, seen, read, takePicture, answer, answerPut, answerLook } = setUp()
  read()
  takePicture(1)
  answer(1, 'v')
  answerPut('foreign')
  expect([read(), copies.writtenNames]).toEqual([false, []])
  copies.tick()
  expect(answerLook('another')).toBe(true)
  expect(copies.writtenNames).toEqual([])
  copies.tick()
  answerLook('k')
  expect(copies.writtenNames).toEqual(['k_1'])
  takePicture(2)
  read()
  answer(2, 'w')
  expect(seen.at(-1)).toBe('$1\r\nw\r\n')
})

test('a copy is hidden before its first write is answered, and a key that is not ours is shown once that is known', () => {
  const { copies, isShown, read, takePicture, answerPut } = setUp()
  expect(isShown()).toBe(true)
  read()
  takePicture(1)
  expect(isShown()).toBe(false)
  answerPut('foreign')
  expect(isShown()).toBe(true)
  copies.missed()
  takePicture(2)
  expect(isShown()).toBe(true)
  answerPut('put')
  expect(isShown()).toBe(false)
})

test.each([
  { isFollowed: true, removed: 0 },
  { isFollowed: false, removed: 1 },
])(
  'who was not elected removes $removed copies when the key cools, if followed by another: $isFollowed',
  (expected) => {
    const { copies, read, takePicture, answerResignation, removals } = setUp()
    read()
    takePicture(1)
    copies.close()
    expect(removals()).toBe(0)
    answerResignation(expected.isFollowed)
    expect(removals()).toBe(expected.removed)
  },
)

test('copies that could not be removed, because their server was out of reach, are removed once it is back', () => {
  const { copies, clock, watcher, read, takePicture, answerResignation, removals, resignations } = setUp()
  read()
  takePicture(1)
  watcher.canRead = false
  copies.close()
  clock.advance(1000)
  expect(resignations()).toBe(0)
  watcher.canRead = true
  clock.advance(5000)
  expect(resignations()).toBe(1)
  answerResignation(false)
  expect(removals()).toBe(1)
})

test('copies are not removed late if their key has copies again', () => {
  const { copies, clock, watcher, read, takePicture, resignations, heatAgain } = setUp()
  read()
  takePicture(1)
  watcher.canRead = false
  copies.close()
  watcher.canRead = true
  heatAgain()
  clock.advance(60_000)
  expect(resignations()).toBe(0)
})
