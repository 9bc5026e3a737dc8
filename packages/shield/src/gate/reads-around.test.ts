import { commandOf } from '@firebreak/core/commands'
import { expect, test } from 'vitest'
import { readCommand } from '../cache/read-command.ts'
import type { CopySet } from '../copies/copy-set.ts'
import { Tally } from '../status/tally.ts'
import { watchedKey } from '../testing/watched-key.ts'
import { Trouble } from '../trouble/trouble.ts'
import type { ClusterHotKeys } from './cluster-hot-keys.ts'
import type { ConnectionFacts } from './connection-facts.ts'
import { Gate } from './gate.ts'
import type { GateRequest, LoadedReader } from './gate-request.ts'
import { OpenState } from './open-state.ts'

/** A gate with one hot key, asked for its GET as by a client or a pipeline. */
function setUp() {
  const key = watchedKey()
  const immediates: (() => void)[] = []
  const timers = {
    setTimeout: () => ({ cancel() {} }),
    setInterval: () => ({ cancel() {} }),
    setImmediate: (callback: () => void) => {
      immediates.push(callback)
      return { cancel() {} }
    },
  }
  const gate = new Gate({} as ClusterHotKeys, new Tally(), timers, new Trouble())
  const open = new OpenState()
  const connection = { isReady: true, isPinned: false, open, now: key.now } as unknown as ConnectionFacts
  const row = commandOf('get', 'k')!
  /** Reads that were returned to the caller: they go to Redis, and call this when they are answered. */
  const givenBack: (() => void)[] = []
  const whenLoaded: LoadedReader = (reply, answered) => {
    if (reply === undefined) givenBack.push(answered)
  }
  const ask = (canWait: boolean) =>
    gate.ask(
      {
        row,
        args: { length: 2 },
        visit: () => key.hot,
        readOf: () => readCommand('GET', ['k'], 0),
        whenLoaded: () => whenLoaded,
        isAnswerable: true,
        canWait,
      } as unknown as GateRequest,
      connection,
    )
  const endTurn = () => {
    for (const callback of immediates.splice(0)) callback()
  }
  /** Answers a read on the application's own connection. */
  const readAround = (canWait: boolean) => {
    const verdict = ask(canWait)
    if (verdict.kind !== 'guarded') throw new Error(`the read is not followed: ${verdict.kind}`)
    return verdict.end
  }
  return { ...key, ask, open, endTurn, readAround, givenBack }
}

const textOf = (verdict: { kind: string }) =>
  verdict.kind === 'answer'
    ? Buffer.from((verdict as unknown as { reply: { bytes: Buffer } }).reply.bytes).toString()
    : verdict.kind

test('a reply read before a pipeline was answered is not served after it', () => {
  const { hot, ask, answer, now, readAround } = setUp()
  const answered = readAround(false)
  // Meanwhile somebody else reads the old value; its invalidation is still in flight when the pipeline brings the new one.
  hot.load(readCommand('GET', ['k'], 0), now(), () => {})
  answer('old')
  answered()
  expect(textOf(ask(true))).toBe('loading')
})

test('nor is a reply read before the answer to one that had waited in vain for a load', () => {
  const { hot, reads, ask, answer, now, givenBack } = setUp()
  expect(textOf(ask(true))).toBe('loading')
  reads.shift()!(undefined, now())
  // The watcher is back, and its invalidation is still in flight when Redis answers.
  hot.load(readCommand('GET', ['k'], 0), now(), () => {})
  answer('old')
  expect(givenBack).toHaveLength(1)
  givenBack[0]!()
  expect(textOf(ask(true))).toBe('loading')
})

test('nor is a copy that was made before it', () => {
  const { hot, open, readAround } = setUp()
  let pictures = 0
  hot.setHandling({ ...hot.handling, strategy: { strategy: 'Observe' } })
  hot.copies = { written: () => void pictures++ } as unknown as CopySet
  open.isWatching = true
  const answered = readAround(true)
  expect(pictures).toBe(0)
  answered()
  expect(pictures).toBe(1)
})

test('nor is a load that was in flight', () => {
  const { hot, ask, answer, now, readAround } = setUp()
  const answered = readAround(false)
  hot.load(readCommand('GET', ['k'], 0), now(), () => {})
  answered()
  answer('old')
  expect(textOf(ask(true))).toBe('loading')
})

test('a pipeline refills memory for the next one with a read made after its answer, one for a whole turn', () => {
  const { reads, ask, answer, endTurn, readAround } = setUp()
  const ends = [readAround(false), readAround(false), readAround(false)]
  expect(reads).toHaveLength(0)
  for (const end of ends) end()
  endTurn()
  expect(reads).toHaveLength(1)
  answer('new')
  expect(textOf(ask(false))).toBe('$3\r\nnew\r\n')
})

test('a read under WATCH is not followed by anything older', () => {
  const { hot, open, ask, answer, now, readAround } = setUp()
  hot.load(readCommand('GET', ['k'], 0), now(), () => {})
  answer('old')
  open.isWatching = true
  const answered = readAround(true)
  answered()
  open.isWatching = false
  expect(textOf(ask(true))).toBe('loading')
})
