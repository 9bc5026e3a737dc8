import { diskReads } from './cache/disk-reads.ts'
import { hotReads } from './cache/hot-reads.ts'
import { policySpeed } from './cache/policy-speed.ts'
import { traceRatios } from './cache/trace-ratios.ts'
import { Bench, isQuick } from './harness/bench.ts'

/**
 * What a hot key's read costs: by `peek`, and by the normal API of both client libraries against the bare client on the
 * same server, turn by turn; and that of hot keys on disk. Then the cache itself: its speed against lru-cache, and how many requests of real traces
 * its default policy answers, against LRU. `--part=NAME` runs one of them.
 */
const parts = { reads: hotReads, disk: diskReads, policy: policySpeed, traces: traceRatios }
const wanted = process.argv.find((flag) => flag.startsWith('--part='))?.slice('--part='.length)

const bench = new Bench('cache')
for (const [name, run] of Object.entries(parts)) if (wanted === undefined || wanted === name) await run(bench)
bench.done({ redis: '7', quick: String(isQuick) })
