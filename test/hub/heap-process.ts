// A hub on a clock of its own, its sensors on real connections beside it: `play SECONDS` on standard input lets so much of
// its time pass, as fast as it can, and answers with the heap that is in use after a collection. Options as JSON in the first
// argument.
import { createInterface } from 'node:readline'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type HubOptions, startHub } from '@firebreak/hub'
import { FakeClock, fakeRuntime, waitFor } from '@firebreak/testkit'
import { WireSensor } from './wire-sensor.ts'

const sensorCount = 10
const keyCount = 5000
const keysPerReport = 100
/** Virtual time between two reports of a sensor. */
const intervalMs = 200

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

// The first block of every length begins here.
const clock = new FakeClock(1_700_000_400_000)
const options = JSON.parse(process.argv[2] ?? '{}') as HubOptions
const hub = await startHub({ logLevel: 'error', ...options, runtime: fakeRuntime(1, clock), loadOf: () => 0 })
const { core } = hub
const sensors = Array.from({ length: sensorCount }, (_, number) => new WireSensor(hub.url, number, 'shop', clock))
await waitFor(() => sensors.every(({ isReady }) => isReady))

/** Some of the keys in turn, and ten that are hot for two seconds each, so that keys heat and cool all the time. */
function counts(turn: number): Record<string, number> {
  const found: Record<string, number> = {}
  for (let index = 0; index < keysPerReport; index++) found[`key-${(turn * keysPerReport + index) % keyCount}`] = 1
  const second = Math.floor(clock.now() / 2000)
  for (let index = 0; index < 10; index++) found[`hot-${(second * 10 + index) % 200}`] = 10
  return found
}

let reports = 0
async function play(seconds: number): Promise<void> {
  const end = clock.now() + seconds * 1000
  while (clock.now() < end) {
    for (const sensor of sensors) sensor.report(counts(reports++))
    while (core.collector.reportCount < reports) await turn()
    clock.advance(intervalMs)
    await core.stored()
  }
}

async function heap(): Promise<string> {
  // What is freed by finalizers is free after the second.
  for (let times = 0; times < 2; times++) {
    collect()
    await turn()
  }
  const { heapUsed, external, rss } = process.memoryUsage()
  return JSON.stringify({ inUse: heapUsed + external, rss, reportCount: core.collector.reportCount })
}

process.stdout.write('ready\n')
for await (const line of createInterface({ input: process.stdin })) {
  await play(Number(line.slice('play '.length)))
  process.stdout.write(`heap ${await heap()}\n`)
}
for (const sensor of sensors) sensor.close()
await hub.close()
