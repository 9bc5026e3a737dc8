import { BoundedCache } from '@firebreak/core'
import { zipfTrace } from '@firebreak/testkit'
import { LRUCache } from 'lru-cache'
import { type Bench, interleaved, median, medianRatio, rounds, say } from '../harness/bench.ts'

const entries = 10_000

/** Requests per CPU second to SIEVE and to lru-cache: the same keys, each a look-up and, where it misses, an insertion. */
export async function policySpeed(bench: Bench): Promise<void> {
  say('SIEVE and lru-cache at 10,000 entries')
  const load = zipfTrace(200_000, entries * 4, 1)
  const requests = Array.from(load.ids, (id) => load.keys[id]!)
  const sieve = new BoundedCache<string>({ maxEntries: entries, maxBytes: Number.MAX_SAFE_INTEGER, policy: 'SIEVE' })
  const lru = new LRUCache<string, string>({ max: entries })
  const perSecond = (run: () => void) => () => {
    const before = process.cpuUsage()
    run()
    const { user, system } = process.cpuUsage(before)
    return (requests.length / (user + system)) * 1e6
  }
  // A loop for each: one that calls whichever it is given would mostly measure that call, which cannot be inlined.
  const contestants = {
    sieve: perSecond(() => {
      for (const key of requests) if (sieve.get(key) === undefined) sieve.set(key, key, 1)
    }),
    lru: perSecond(() => {
      for (const key of requests) if (lru.get(key) === undefined) lru.set(key, key)
    }),
  }
  await interleaved(5, contestants)
  const speeds = await interleaved(rounds(40, 100), contestants)
  bench.report({
    id: 'sieve-vs-lru-cache',
    ratio: medianRatio(speeds.sieve, speeds.lru),
    of: `requests per CPU second to SIEVE at 10,000 entries (${Math.round(median(speeds.sieve)).toLocaleString('en-US')})`,
    to: 'lru-cache',
  })
}
