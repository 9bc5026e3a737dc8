// Limits against their peers: in process, on Redis, and the rule service against a bare route.
import { Bench } from './harness/bench.ts'
import { benchBrowse } from './limits/browse.ts'
import { benchLocal } from './limits/local.ts'
import { benchRedis } from './limits/redis.ts'

const bench = new Bench('limits')
await benchLocal(bench)
await benchRedis(bench)
await benchBrowse(bench)
bench.done()
