import type { RedisTarget, RespValue } from '@firebreak/core/resp'
import { KeyRouter } from '../connect/key-router.ts'
import { list, number, text } from '../connect/replies.ts'
import type { DiscoverOptions } from '../connect/topology.ts'
import { FindError } from '../errors.ts'
import { escapeKey } from '../keys/escape-key.ts'
import { pause } from '../scan/pause.ts'
import type { Progress } from '../scan/run-on-nodes.ts'
import { makePlan, planKey, readPlan, type SplitPlan, segmentKey, segmentOf, writePlan } from './split-plan.ts'

/** How a big key is split. */
export interface SplitOptions extends DiscoverOptions {
  readonly target: RedisTarget
  readonly key: Uint8Array
  /** @default one per 5,000 elements */
  readonly segments?: number
  /** Elements copied in one step. @default 1000 */
  readonly batch?: number
  /** Maximum elements per second. @default no limit */
  readonly elementsPerSecond?: number
  /** Stops after the current step; a later call resumes there. */
  readonly signal?: AbortSignal
  readonly progress?: (progress: Progress) => void
}

/** The result of a split. */
export interface SplitResult {
  readonly plan: SplitPlan
  readonly isComplete: boolean
  /** Elements that differed or were missing in the final comparison, and were copied again. */
  readonly corrected: number
}

const lengthCommand = { hash: 'HLEN', set: 'SCARD', list: 'LLEN' } as const

/**
 * Copies a big hash, set or list into segments and compares both. The key itself stays unchanged until `cutOver`.
 *
 * Every step records its progress in the plan next to the key, so that an interrupted copy can resume. Hashes and sets
 * are copied with SCAN's cursor, where repeating a step does no harm; a list is copied by index, and whatever an
 * interrupted step had already appended is trimmed first. Concurrent writes are found by the final comparison and
 * copied again; a list that changed is refused, since its indexes have moved.
 */
export async function splitKey(options: SplitOptions): Promise<SplitResult> {
  const router = await KeyRouter.open(options.target, options)
  try {
    const key = Buffer.from(options.key)
    let plan = await readPlan(router, key)
    if (plan === undefined) {
      plan = await makePlan(router, key, options.segments)
      await writePlan(router, plan)
    }
    if (plan.state === 'cut-over') throw refuse(key, 'has already been cut over')
    if (options.segments !== undefined && options.segments !== plan.segments) {
      throw refuse(
        key,
        `is being split into ${plan.segments} segments: continue with that, or delete "${escapeKey(planKey(key))}" and its segments`,
      )
    }
    plan = plan.type === 'list' ? await copyList(router, plan, options) : await copyByCursor(router, plan, options)
    if (options.signal?.aborted) return { plan, isComplete: false, corrected: 0 }
    const corrected = await compare(router, plan, options)
    await copyTtl(router, plan)
    plan = { ...plan, state: 'copied' }
    await writePlan(router, plan)
    return { plan, isComplete: true, corrected }
  } finally {
    router.close()
  }
}

/** Removes the source of a finished split, after one more comparison. */
export async function cutOver(options: Omit<SplitOptions, 'segments'>): Promise<SplitResult> {
  const router = await KeyRouter.open(options.target, options)
  try {
    const key = Buffer.from(options.key)
    const plan = await readPlan(router, key)
    if (plan === undefined) throw refuse(key, 'has not been split')
    if (plan.state === 'cut-over') return { plan, isComplete: true, corrected: 0 }
    if (plan.state !== 'copied') throw refuse(key, 'has not been copied completely: finish the split first')
    const corrected = await compare(router, plan, options)
    const done: SplitPlan = { ...plan, state: 'cut-over' }
    await writePlan(router, done)
    await router.send(key, ['UNLINK', key])
    return { plan: done, isComplete: true, corrected }
  } finally {
    router.close()
  }
}

function refuse(key: Buffer, reason: string): FindError {
  return new FindError('FB_SPLIT_REFUSED', `"${escapeKey(key)}" ${reason}`)
}

/** One page of a hash or set: elements with their values, if any. */
async function page(router: KeyRouter, plan: SplitPlan, cursor: string, batch: number) {
  const command = plan.type === 'hash' ? 'HSCAN' : 'SSCAN'
  const reply = list(await router.send(plan.key, [command, plan.key, cursor, 'COUNT', batch]))
  return { cursor: text(reply[0]), items: list(reply[1]) as readonly Uint8Array[] }
}

async function copyByCursor(router: KeyRouter, start: SplitPlan, options: SplitOptions): Promise<SplitPlan> {
  let plan = start
  if (plan.state === 'copied') return plan
  const pace = await paceOf(router, plan, options)
  do {
    const { cursor, items } = await page(router, plan, plan.cursor, options.batch ?? 1000)
    await writeItems(router, plan, items)
    plan = { ...plan, cursor, copied: plan.copied + items.length / width(plan) }
    await writePlan(router, plan)
    await pace(plan.copied)
  } while (plan.cursor !== '0' && !options.signal?.aborted)
  return plan
}

/** Items per element: field and value, or just the member. */
function width(plan: SplitPlan): number {
  return plan.type === 'hash' ? 2 : 1
}

/** Writes elements to their segments, one command per segment. */
async function writeItems(router: KeyRouter, plan: SplitPlan, items: readonly Uint8Array[]): Promise<void> {
  const bySegment = new Map<number, Uint8Array[]>()
  for (let index = 0; index < items.length; index += width(plan)) {
    const segment = segmentOf(items[index]!, plan.segments)
    const args = bySegment.get(segment) ?? []
    args.push(...items.slice(index, index + width(plan)))
    bySegment.set(segment, args)
  }
  const command = plan.type === 'hash' ? 'HSET' : 'SADD'
  await Promise.all(
    [...bySegment].map(([segment, args]) => {
      const name = segmentKey(plan.key, segment)
      return router.send(name, [command, name, ...args])
    }),
  )
}

async function copyList(router: KeyRouter, start: SplitPlan, options: SplitOptions): Promise<SplitPlan> {
  let plan = start
  const { key, segmentElements } = plan
  if (plan.state === 'copied') return plan
  const pace = await paceOf(router, plan, options)
  const total = number(await router.send(key, ['LLEN', key]))
  await trimToPlan(router, plan)
  while (plan.copied < total && !options.signal?.aborted) {
    const segment = Math.floor(plan.copied / segmentElements)
    const end = Math.min(plan.copied + (options.batch ?? 1000), (segment + 1) * segmentElements, total)
    const items = list(await router.send(key, ['LRANGE', key, plan.copied, end - 1])) as readonly Uint8Array[]
    if (items.length === 0) break
    const name = segmentKey(key, segment)
    await router.send(name, ['RPUSH', name, ...items])
    plan = { ...plan, copied: plan.copied + items.length, cursor: String(plan.copied + items.length) }
    await writePlan(router, plan)
    await pace(plan.copied)
  }
  return plan
}

/** Trims what an interrupted step had appended beyond the plan's progress. */
async function trimToPlan(router: KeyRouter, plan: SplitPlan): Promise<void> {
  const segment = Math.floor(plan.copied / plan.segmentElements)
  if (segment >= plan.segments) return
  const name = segmentKey(plan.key, segment)
  const known = plan.copied - segment * plan.segmentElements
  if (known === 0) await router.send(name, ['UNLINK', name])
  else await router.send(name, ['LTRIM', name, 0, known - 1])
}

/** Compares source and segments and copies what differs again; returns the number of such elements. */
async function compare(router: KeyRouter, plan: SplitPlan, options: SplitOptions): Promise<number> {
  if (plan.type === 'list') return compareList(router, plan, options)
  let corrected = 0
  let cursor = '0'
  do {
    const { cursor: next, items } = await page(router, plan, cursor, options.batch ?? 1000)
    cursor = next
    const wrong = await differing(router, plan, items)
    await writeItems(router, plan, wrong)
    corrected += wrong.length / width(plan)
  } while (cursor !== '0')
  await removeForeign(router, plan)
  return corrected
}

/** The elements of a page that their segment lacks, or has with another value. */
async function differing(router: KeyRouter, plan: SplitPlan, items: readonly Uint8Array[]): Promise<Uint8Array[]> {
  const wrong: Uint8Array[] = []
  const checks: Promise<void>[] = []
  for (let index = 0; index < items.length; index += width(plan)) {
    const [element, value] = [items[index]!, items[index + 1]]
    const name = segmentKey(plan.key, segmentOf(element, plan.segments))
    const command = plan.type === 'hash' ? 'HGET' : 'SISMEMBER'
    checks.push(
      router.send(name, [command, name, element]).then((reply) => {
        const isSame = plan.type === 'hash' ? isEqual(reply, value!) : reply === 1
        if (!isSame) wrong.push(...items.slice(index, index + width(plan)))
      }),
    )
  }
  await Promise.all(checks)
  return wrong
}

/** Removes from the segments what was deleted from the source during the copy. */
async function removeForeign(router: KeyRouter, plan: SplitPlan): Promise<void> {
  const [scan, has, remove] = plan.type === 'hash' ? ['HSCAN', 'HEXISTS', 'HDEL'] : ['SSCAN', 'SISMEMBER', 'SREM']
  const expected = number(await router.send(plan.key, [lengthCommand[plan.type], plan.key]))
  let total = 0
  for (let segment = 0; segment < plan.segments; segment++) {
    const name = segmentKey(plan.key, segment)
    total += number(await router.send(name, [lengthCommand[plan.type], name]))
  }
  if (total === expected) return
  for (let segment = 0; segment < plan.segments; segment++) {
    const name = segmentKey(plan.key, segment)
    let cursor = '0'
    do {
      const reply = list(await router.send(name, [scan!, name, cursor, 'COUNT', 1000]))
      cursor = text(reply[0])
      const items = list(reply[1]) as readonly Uint8Array[]
      for (let index = 0; index < items.length; index += width(plan)) {
        const element = items[index]!
        if ((await router.send(plan.key, [has!, plan.key, element])) === 0)
          await router.send(name, [remove!, name, element])
      }
    } while (cursor !== '0')
  }
}

async function compareList(router: KeyRouter, plan: SplitPlan, options: SplitOptions): Promise<number> {
  const total = number(await router.send(plan.key, ['LLEN', plan.key]))
  const batch = options.batch ?? 1000
  let at = 0
  for (let segment = 0; segment < plan.segments; segment++) {
    const name = segmentKey(plan.key, segment)
    for (let from = 0; ; from += batch) {
      const copy = list(await router.send(name, ['LRANGE', name, from, from + batch - 1])) as readonly Uint8Array[]
      if (copy.length === 0) break
      const source = list(await router.send(plan.key, ['LRANGE', plan.key, at, at + copy.length - 1]))
      if (source.length !== copy.length || copy.some((item, index) => !isEqual(source[index]!, item))) {
        throw listChanged(plan)
      }
      at += copy.length
    }
  }
  if (at !== total) throw listChanged(plan)
  return 0
}

function listChanged(plan: SplitPlan): FindError {
  const key = escapeKey(plan.key)
  return new FindError(
    'FB_SPLIT_CHANGED',
    `the list "${key}" changed while it was copied: stop its writers, delete "${escapeKey(planKey(plan.key))}" and the segments "${key}:0" to "${key}:${plan.segments - 1}", and split it again`,
  )
}

function isEqual(reply: RespValue, value: Uint8Array): boolean {
  return reply instanceof Uint8Array && Buffer.compare(reply, value) === 0
}

/** Gives segments the expiry of their source. */
async function copyTtl(router: KeyRouter, plan: SplitPlan): Promise<void> {
  const ttlMs = number(await router.send(plan.key, ['PTTL', plan.key]))
  if (ttlMs < 0) return
  for (let segment = 0; segment < plan.segments; segment++) {
    const name = segmentKey(plan.key, segment)
    await router.send(name, ['PEXPIRE', name, ttlMs])
  }
  await router.send(planKey(plan.key), ['PEXPIRE', planKey(plan.key), ttlMs])
}

/** Reports progress and throttles to the rate. */
async function paceOf(router: KeyRouter, plan: SplitPlan, options: SplitOptions) {
  const total = number(await router.send(plan.key, [lengthCommand[plan.type], plan.key]))
  const startedAt = performance.now()
  return async (copied: number) => {
    options.progress?.({ unit: 'elements', done: copied, total })
    if (options.elementsPerSecond === undefined) return
    const dueAt = startedAt + ((copied - plan.copied) / options.elementsPerSecond) * 1000
    await pause(dueAt - performance.now(), options.signal)
  }
}
