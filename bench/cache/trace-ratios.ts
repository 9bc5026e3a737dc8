import { loadTrace, traceNames, zipfTrace } from '@firebreak/testkit'
import { type Bench, say } from '../harness/bench.ts'
import { hitRatio } from './hit-ratio.ts'

/** How many requests of the recorded traces the default policy answers, against LRU of the same size. */
export function traceRatios(bench: Bench): void {
  say('hit ratios at 1 % of the keys')
  const traces = traceNames().map(loadTrace)
  if (traces.length === 0) say('no recorded traces (set FIREBREAK_TRACES): a generated Zipf trace stands for them')
  const differences = (traces.length > 0 ? traces : [zipfTrace(500_000, 40_000, 0.9)]).map((trace) => {
    const size = Math.max(1, Math.round(trace.keys.length / 100))
    const own = hitRatio(trace, 'S3-FIFO', size)
    const rival = hitRatio(trace, 'LRU', size)
    say(`${trace.name}: ${size} entries, S3-FIFO ${own.toFixed(2)} %, LRU ${rival.toFixed(2)} %`)
    return own - rival
  })
  bench.report({ id: 's3fifo-minus-lru-min-points', value: Math.min(...differences), unit: 'points' })
  const mean = differences.reduce((sum, difference) => sum + difference, 0) / differences.length
  bench.report({ id: 's3fifo-minus-lru-mean-points', value: mean, unit: 'points' })
}
