import { type GuardedChild, isFullRun, startSource, temporaryFolder, waitFor } from '@firebreak/testkit'
import { afterEach, beforeEach, expect, test } from 'vitest'

interface Heap {
  readonly inUse: number
  readonly rss: number
  readonly reportCount: number
}

const megabyte = 2 ** 20
const rules = [{ id: 'any', glob: '*', threshold: 200, windowMs: 1000, minHoldMs: 1000 }]
/** Reports that the process sends in a minute of the hub's time. */
const reportsPerMinute = 3000
/**
 * What is in use goes up and down with the blocks of the past that are being filled: they are of 10 s, 100 s and 10 minutes. So it is looked
 * at where all of them end, and what lies between two such moments is growth.
 */
const blockMinutes = 10

let child: GuardedChild

beforeEach(async () => {
  const options = JSON.stringify({ dataFolder: temporaryFolder('memory'), initialRules: rules })
  child = startSource(new URL('./heap-process.ts', import.meta.url), [options], { stdio: ['pipe', 'pipe', 'pipe'] })
  await child.printed(/ready/)
})
afterEach(() => child.stop())

/** The heap at the end of each of so many blocks. */
async function heaps(blocks: number): Promise<Heap[]> {
  child.process.stdin!.write(`play ${blockMinutes * 60}\n`.repeat(blocks))
  const answers = await waitFor(
    () => {
      const found = [...child.output().matchAll(/^heap (\{.*\})$/gm)]
      return found.length === blocks ? found : undefined
    },
    { timeoutMs: blocks * 120_000, everyMs: 100 },
  )
  return answers.map(([, json]) => JSON.parse(json!) as Heap)
}

/**
 * On the hub's own clock, so that a busy machine changes nothing. Between the ends of the first two blocks it grew by 0.02 to 0.05 MB a
 * minute, and not at all later; 7 MB a minute (of garbage, as it turned out) is what once had to be told from a leak.
 */
test('the memory of a hub under a steady load is flat', async () => {
  const found = await heaps(isFullRun ? 7 : 2)
  const lines = found.map(({ inUse, rss }, at) => {
    return `${(at + 1) * blockMinutes} min: ${show(inUse)} in use, ${show(rss)} resident`
  })
  process.stdout.write(`${lines.join('\n')}\n`)
  const [first, last] = [found[0]!, found.at(-1)!]
  const minutes = (found.length - 1) * blockMinutes
  expect(last.reportCount).toBe(found.length * blockMinutes * reportsPerMinute)
  expect((last.inUse - first.inUse) / minutes / megabyte).toBeLessThan(isFullRun ? 0.05 : 0.25)
}, 900_000)

function show(bytes: number): string {
  return `${(bytes / megabyte).toFixed(1)} MB`
}
