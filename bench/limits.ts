// Limits against their peers: in process, on Redis, and the rule service against a bare route. `--only=NAME` runs one
// part: local, redis-many, redis-hot, browse, peers.
import { Bench } from './harness/bench.ts'
import { benchBrowse } from './limits/browse.ts'
import { benchLocal } from './limits/local.ts'
import { benchPeers } from './limits/peers.ts'
import { benchRedisHot, benchRedisMany } from './limits/redis.ts'

const parts: Record<string, (bench: Bench) => Promise<void>> = {
  local: benchLocal,
  'redis-many': benchRedisMany,
  'redis-hot': benchRedisHot,
  browse: benchBrowse,
  peers: benchPeers,
}
const only = process.argv.find((flag) => flag.startsWith('--only='))?.slice('--only='.length)

const bench = new Bench('limits')
for (const [name, part] of Object.entries(parts)) if (only === undefined || only === name) await part(bench)
bench.done()
