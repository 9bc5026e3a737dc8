import { Locks } from '@firebreak/locks'
import { Redis } from 'ioredis'
import { type Bench, interleaved, median, medianRatio, rounds } from '../harness/bench.ts'
import { workMs } from '../harness/work-time.ts'
import type { ContestantName, Take } from './contestants.ts'

/** The least that a lock with an owner can be: SET NX PX, and a script that deletes what is ours. */
const deleteMine = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"

// Many short rounds: a noisy moment then spoils few of them.
const pairs = 300

/** How long does a lock take when it is free? */
export async function benchUncontended(
  bench: Bench,
  port: number,
  take: Readonly<Record<ContestantName, Take>>,
): Promise<void> {
  const raw = new Redis(port)
  const sha1 = (await raw.script('LOAD', deleteMine)) as string
  const client = new Redis(port)
  const locks = new Locks(client)
  const lock = locks.getLock('free-firebreak')
  const pair = (contestant: ContestantName) => async () => (await take[contestant](`free-${contestant}`))()
  const contestants = {
    raw: () =>
      perSecond(pairs, async () => {
        await raw.set('free-raw', 'owner', 'PX', 30_000, 'NX')
        await raw.evalsha(sha1, 1, 'free-raw', 'owner')
      }),
    firebreak: () =>
      perSecond(pairs, async () => {
        const handle = await lock.lock()
        await handle.unlock()
      }),
    'redis-semaphore': () => perSecond(pairs / 3, pair('redis-semaphore')),
    redlock: () => perSecond(pairs / 3, pair('redlock')),
  }
  // Untimed first, so that no round is spent on compiling.
  await interleaved(5, contestants)
  const free = await interleaved(rounds(41, 101), contestants)
  for (const [name, speeds] of Object.entries(free)) {
    bench.report({ id: `uncontended-${name}`, value: median(speeds), unit: 'pairs/s' })
  }
  bench.report({
    id: 'uncontended-vs-raw',
    ratio: medianRatio(free.firebreak, free.raw),
    of: 'lock + unlock',
    to: 'SET NX PX + EVALSHA',
  })
  await locks.close()
  client.disconnect()
  raw.disconnect()
}

async function perSecond(count: number, once: () => Promise<unknown>): Promise<number> {
  const startedAt = workMs()
  for (let index = 0; index < count; index++) await once()
  return (count / (workMs() - startedAt)) * 1000
}
