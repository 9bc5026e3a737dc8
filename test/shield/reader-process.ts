// A process that keeps a key hot with a read now and then. For a line with a number it makes that many reads, 16 at a
// time, and prints how many failed or brought another value than the one that the line names.
import { createInterface } from 'node:readline'
import { protect, shieldOf } from '@firebreak/client'
import { waitFor } from '@firebreak/testkit'
import { Cluster } from 'ioredis'

interface Plan {
  readonly addresses: { host: string; port: number }[]
  readonly hub: string
  readonly key: string
  readonly instanceId: string
}

const { addresses, hub, key, instanceId } = JSON.parse(process.argv[2]!) as Plan
const cluster = protect(new Cluster(addresses, { redisOptions: { connectTimeout: 2000 } }), {
  hubs: [hub],
  serviceId: 'shop',
  instanceId,
  redisClusterId: 'c',
  tableFile: false,
  canaryMs: 0,
})
cluster.on('error', () => {})
await waitFor(() => cluster.status === 'ready' && shieldOf(cluster)!.isConnected)
setInterval(() => void cluster.get(key).catch(() => {}), 10)
process.stdout.write('ready\n')
for await (const line of createInterface({ input: process.stdin })) {
  const [reads, expected] = line.split(' ')
  let left = Number(reads)
  const outcome = { failed: 0, wrong: 0 }
  const worker = async () => {
    while (left-- > 0) {
      const value = await cluster.get(key).catch(() => undefined)
      if (value === undefined) outcome.failed++
      else if (value !== expected) outcome.wrong++
    }
  }
  await Promise.all(Array.from({ length: 16 }, worker))
  process.stdout.write(`${reads} ${JSON.stringify(outcome)}\n`)
}
