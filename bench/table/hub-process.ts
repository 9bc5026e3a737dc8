import { createInterface } from 'node:readline'
import { defaultLocalCache, encodeJsonFrame, type TableEntry } from '@firebreak/core'
import { TestHub } from '@firebreak/testkit'

/**
 * A hub in a process of its own, so that its work is not counted as the client's. `heat CLUSTER FROM TO SIZE WITHIN_MS`
 * on stdin makes the keys `product:FROM` to `product:TO` hot, `SIZE` in each delta, all within that time.
 */
const hub = await TestHub.start()
hub.heartbeatMs = 1000
process.stdout.write(`hub ${hub.url}\n`)

function entryOf(redisClusterId: string, index: number): TableEntry {
  const now = hub.now()
  return {
    redisClusterId,
    key: `product:${index}`,
    // Room for all of them: what is kept at rest is then all there is.
    strategy: { ...defaultLocalCache, cacheSize: 200_000, maxBytes: 1 << 30, expireTime: 3600 },
    ruleId: 'products',
    reason: `hot because rule \`products\`: ${1000 + index}/s over 1 s ≥ 1,000`,
    since: now,
    until: now + 3_600_000,
  }
}

async function heat(redisClusterId: string, from: number, to: number, size: number, withinMs: number): Promise<void> {
  const deltas = Math.ceil((to - from) / size)
  const started = Date.now()
  for (let index = 0; index < deltas; index++) {
    const first = from + index * size
    const count = Math.min(size, to - first)
    const set = Array.from({ length: count }, (_, offset) => entryOf(redisClusterId, first + offset))
    const version = hub.version++
    hub.broadcast(encodeJsonFrame('delta', 0, { epoch: hub.epoch, from: version, to: version + 1, set, removed: [] }))
    const waitMs = started + ((index + 1) * withinMs) / deltas - Date.now()
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, waitMs)))
  }
  process.stdout.write(`version ${hub.version}\n`)
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const [verb, redisClusterId, ...numbers] = line.split(' ')
  const [from, to, size, withinMs] = numbers.map(Number)
  if (verb === 'heat') void heat(redisClusterId!, from!, to!, size!, withinMs!)
})
setInterval(() => {
  hub.reports.length = 0
  hub.statuses.length = 0
}, 50)
