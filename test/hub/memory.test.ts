import { type GuardedChild, isFullRun, startSource, temporaryFolder, waitFor } from '@firebreak/testkit'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { WireSensor } from './wire-sensor.ts'

interface Heap {
  readonly inUse: number
  readonly rss: number
  readonly reportCount: number
}

const sensorCount = 10
const keyCount = 5000
const megabyte = 2 ** 20
const rules = [{ id: 'any', glob: '*', threshold: 200, windowMs: 1000, minHoldMs: 1000 }]

let child: GuardedChild
let sensors: WireSensor[]

beforeEach(async () => {
  const options = JSON.stringify({ dataFolder: temporaryFolder('memory'), initialRules: rules })
  child = startSource(new URL('./heap-process.ts', import.meta.url), [options], { stdio: ['pipe', 'pipe', 'pipe'] })
  const [, url] = await child.printed(/listening (\S+)/)
  sensors = Array.from({ length: sensorCount }, (_, number) => new WireSensor(url!, number))
  await waitFor(() => sensors.every(({ isReady }) => isReady))
})
afterEach(async () => {
  for (const sensor of sensors) sensor.close()
  await child.stop()
})

/** A hundred of the keys in turn, and some that are hot for two seconds each, so that keys heat and cool all the time. */
function counts(turn: number): Record<string, number> {
  const found: Record<string, number> = {}
  for (let index = 0; index < 100; index++) found[`key-${(turn * 100 + index) % keyCount}`] = 1
  const second = Math.floor(Date.now() / 2000)
  for (let index = 0; index < 10; index++) found[`hot-${(second * 10 + index) % 200}`] = 20
  return found
}

let asked = 0
async function heap(): Promise<Heap> {
  child.process.stdin!.write('heap\n')
  asked++
  const answers = await waitFor(() => {
    const found = [...child.output().matchAll(/^heap (\{.*\})$/gm)]
    return found.length === asked ? found : undefined
  })
  return JSON.parse(answers.at(-1)![1]!) as Heap
}

test('the memory of a hub under a steady load is flat, but for the hour of hottest seconds that dry runs look at', async () => {
  let turn = 0
  for (const sensor of sensors) sensor.keepReporting(() => counts(turn++))
  // Until every key has come by, and every hot one has been hot.
  const minutes = isFullRun ? [1, 3, 5] : [0.1, 0.2, 0.3]
  const start = performance.now()
  const heaps: Heap[] = []
  for (const minute of minutes) {
    await waitFor(() => performance.now() - start >= minute * 60_000, { timeoutMs: 200_000, everyMs: 100 })
    heaps.push(await heap())
  }
  const lines = heaps.map(({ inUse, rss }, at) => `${minutes[at]} min: ${show(inUse)} in use, ${show(rss)} resident`)
  process.stdout.write(`${lines.join('\n')}\n`)
  const [, middle, last] = heaps as [Heap, Heap, Heap]
  expect(last.reportCount).toBeGreaterThan(minutes[2]! * 60 * sensorCount)
  // 100 keys a second, 32 bytes each, make 0.2 MB a minute for an hour; a short run has noise besides.
  const grownPerMinute = (last.inUse - middle.inUse) / (minutes[2]! - minutes[1]!)
  expect(grownPerMinute / megabyte).toBeLessThan(isFullRun ? 0.5 : 5)
}, 400_000)

function show(bytes: number): string {
  return `${(bytes / megabyte).toFixed(1)} MB`
}
