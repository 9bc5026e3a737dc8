import { parentPort } from 'node:worker_threads'
import { dryRun } from './dry-run.ts'
import type { DryRunOrder, NodeKey } from './dry-run-aside.ts'
import type { RecordedPoint } from './recorded-seconds.ts'

/** The body of a dry run's thread. */
const keys: NodeKey[] = []
const points: RecordedPoint[] = []

parentPort!.on('message', (order: DryRunOrder) => {
  if (order.kind === 'points') {
    keys.push(...order.keys)
    for (const { at, total, keys: numbers, counts } of order.points) {
      const countsOf = Array.from(numbers, (number, index) => ({
        of: keys[number]!,
        accesses: counts[index * 3]!,
        writes: counts[index * 3 + 1]!,
        bytes: counts[index * 3 + 2]!,
      }))
      points.push({ at, total, counts: countsOf })
    }
    return
  }
  const nodes = new Map(keys.map(({ redisClusterId, slot, node }) => [`${slot} ${redisClusterId}`, node]))
  const nodeOfSlot = (redisClusterId: string, slot: number) => nodes.get(`${slot} ${redisClusterId}`) ?? ''
  parentPort!.postMessage(dryRun(order.rule, { ...order.period, points }, nodeOfSlot))
})
