// Ten thousand sensors and more before real hub cores, on virtual time: each frame is charged what it was measured to cost.
// npm run -s bench -- scale [--quick] [--sizes 10000x3,100000x10] [--plot docs/images/scale.svg]
import { writeFileSync } from 'node:fs'
import { Bench, isQuick, say } from './harness/bench.ts'
import { measureCosts } from './scale/frame-costs.ts'
import { nameOf, scalePlot } from './scale/plots.ts'
import { runScale, type ScaleResult } from './scale/scale-run.ts'

const option = (name: string): string | undefined => {
  const at = process.argv.indexOf(`--${name}`)
  return at < 0 ? undefined : process.argv[at + 1]
}
const sizes = (option('sizes') ?? (isQuick ? '1000x3' : '10000x3,10000x10,100000x3,100000x10,100000x30'))
  .split(',')
  .map((text) => text.split('x').map(Number) as [number, number])

const plot = option('plot')
const bench = new Bench('scale')
const costs = await measureCosts(isQuick ? 0.3 : 1)
for (const [id, value] of Object.entries(costs)) bench.report({ id, value, unit: 'µs' })
const results: ScaleResult[] = []
for (const [sensors, hubs] of sizes) {
  const result = await runScale({ sensors, hubs }, costs)
  results.push(result)
  tell(result)
  if (plot !== undefined) writeFileSync(plot, scalePlot(results))
}
bench.done()

function tell(result: ScaleResult): void {
  const { size, samples, detectedMs, toldMs, hubLostMs, regionMs, cpuMs } = result
  const id = (name: string): string => `${size.sensors}x${size.hubs}-${name}`
  const calm = samples.filter(({ atMs }) => atMs > 3500 && atMs <= 5000)
  const mean = (of: (sample: (typeof samples)[number]) => number): number =>
    calm.reduce((sum, sample) => sum + of(sample), 0) / calm.length
  const figures: [string, number | undefined, string][] = [
    ['calm-hub-load', mean((sample) => sample.mean), 'cores'],
    ['worst-hub-load', Math.max(...samples.map(({ busiest }) => busiest)), 'cores'],
    ['worst-wait', Math.max(...samples.map(({ delayMs }) => delayMs)), 'ms'],
    ['calm-interval', mean(({ intervalMs }) => intervalMs), 'ms'],
    ['calm-bytes-in', mean(({ bytesInPerSecond }) => bytesInPerSecond) / 1e6, 'MB/s'],
    ['calm-bytes-out', mean(({ bytesOutPerSecond }) => bytesOutPerSecond) / 1e6, 'MB/s'],
    ['calm-store-commands', mean(({ storeCallsPerSecond }) => storeCallsPerSecond), '/s'],
    ['worst-store-load', Math.max(...samples.map(({ storeLoad }) => storeLoad)), 'cores'],
    ['detected', detectedMs, 'ms'],
    ['told-half', toldMs?.half, 'ms'],
    ['told-99', toldMs?.most, 'ms'],
    ['told-last', toldMs?.last, 'ms'],
    ['hub-lost-reconnected', hubLostMs, 'ms'],
    ['region-reconnected', regionMs, 'ms'],
  ]
  for (const [name, value, unit] of figures) {
    if (value === undefined) say(`${id(name)}: not within the plan`)
    else bench.report({ id: id(name), value, unit })
  }
  say(`${nameOf(result)}: ${(cpuMs / 1000).toFixed(1)} s of processor time`)
}
