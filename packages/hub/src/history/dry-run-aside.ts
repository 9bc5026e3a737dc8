import { Worker } from 'node:worker_threads'
import type { DryRunView, Runtime } from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import type { NodeOfSlot } from '../decide/access-totals.ts'
import { ApiProblem } from '../errors.ts'
import type { DryRunRecords } from './dry-run.ts'
import type { RecordedKey, RecordedPoint } from './recorded-seconds.ts'

/** Messages to the thread: some points with the keys that it has not seen yet, then the rule. */
export type DryRunOrder =
  | { readonly kind: 'points'; readonly keys: readonly NodeKey[]; readonly points: readonly PackedPoint[] }
  | { readonly kind: 'run'; readonly rule: Rule; readonly period: Omit<DryRunRecords, 'points'> }

/** A recorded key and the node of its slot, which the thread cannot look up. */
export type NodeKey = RecordedKey & { readonly node: string }

/** A point whose keys are numbers: indexes into all keys sent so far. */
export interface PackedPoint extends Pick<RecordedPoint, 'at' | 'total'> {
  readonly keys: Uint32Array
  /** Accesses, writes and bytes of each. */
  readonly counts: Float64Array
}

/** Points packed in one turn of the event loop, well below a millisecond. */
const pointsAtOnce = 60

export interface DryRunAsideOptions {
  readonly nodeOfSlot: NodeOfSlot
  readonly runtime: Runtime
  /** A dry run that takes longer is stopped. @default 30000 */
  readonly maxMs?: number
}

let isRunning = false

/**
 * Tries a rule on recorded traffic in a separate thread, one run at a time: the deciding thread only packs the records,
 * a minute of them per turn.
 */
export async function dryRunAside(
  rule: Rule,
  { points, ...period }: DryRunRecords,
  { nodeOfSlot, runtime, maxMs = 30_000 }: DryRunAsideOptions,
): Promise<DryRunView> {
  if (isRunning) throw new ApiProblem(429, 'FB_DRY_RUN_BUSY', 'another dry run is in progress; try again in a moment')
  isRunning = true
  // The file next to this one, from source and from the build alike.
  const file = new URL(import.meta.url.endsWith('.ts') ? './dry-run-thread.ts' : './dry-run-thread.js', import.meta.url)
  const worker = new Worker(file, { name: 'dry-run' })
  worker.unref()
  const late = new ApiProblem(503, 'FB_DRY_RUN_SLOW', `the dry run took longer than ${maxMs / 1000} s and was stopped`)
  try {
    const answer = new Promise<DryRunView>((resolve, reject) => {
      const timer = runtime.timers.setTimeout(() => reject(late), maxMs)
      worker
        .once('message', resolve)
        .once('error', reject)
        .once('exit', () => timer.cancel())
    })
    // It is awaited below; until then a failure must not count as unhandled.
    answer.catch(() => {})
    const numbers = new Map<RecordedKey, number>()
    for (let start = 0; start < points.length; start += pointsAtOnce) {
      if (start > 0) await new Promise<void>((resolve) => runtime.timers.setImmediate(resolve))
      worker.postMessage(packed(points.slice(start, start + pointsAtOnce), numbers, nodeOfSlot))
    }
    worker.postMessage({ kind: 'run', rule, period } satisfies DryRunOrder)
    return await answer
  } finally {
    isRunning = false
    void worker.terminate()
  }
}

function packed(
  points: readonly RecordedPoint[],
  numbers: Map<RecordedKey, number>,
  nodeOfSlot: NodeOfSlot,
): DryRunOrder {
  const keys: NodeKey[] = []
  const numberOf = (key: RecordedKey) => {
    let number = numbers.get(key)
    if (number === undefined) {
      number = numbers.size
      numbers.set(key, number)
      keys.push({ ...key, node: nodeOfSlot(key.redisClusterId, key.slot) })
    }
    return number
  }
  return {
    kind: 'points',
    points: points.map(({ at, total, counts }) => ({
      at,
      total,
      keys: Uint32Array.from(counts, ({ of }) => numberOf(of)),
      counts: Float64Array.from(counts.flatMap(({ accesses, writes, bytes }) => [accesses, writes, bytes])),
    })),
    keys,
  }
}
