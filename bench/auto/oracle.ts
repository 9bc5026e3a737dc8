import { ticksPerSecond, type Workload } from './workload.ts'

/** From this utilisation on, unhandled, a second matters. */
export const mattersAt = 0.7
/** A key with less of the node than this does not matter to it. */
const leastPart = 0.01

/** Reports take so long: an action that begins so soon after a second that mattered was for its sake. */
const graceTicks = 5

/** What happened in one second, unhandled, and which keys mattered in it. */
export interface Second {
  readonly utilisation: number
  readonly matters: boolean
  /** The fewest keys without which the node would be below 70 %, hottest first, as far as each has 1 % of it. */
  readonly keys: readonly number[]
  readonly counts: ReadonlyMap<number, number>
  readonly total: number
}

/** Knows the whole workload and no rule: what mattered, second by second. */
export function judge(workload: Workload): Second[] {
  const { capacityPerSecond, seconds } = workload
  return Array.from({ length: seconds }, (_, second) => {
    const counts = new Map<number, number>()
    let total = 0
    for (let tick = 0; tick < ticksPerSecond; tick++) {
      const { counts: some, total: sum } = workload.tick(second * ticksPerSecond + tick)
      for (const [key, count] of some) counts.set(key, (counts.get(key) ?? 0) + count)
      total += sum
    }
    const utilisation = total / capacityPerSecond
    const matters = utilisation >= mattersAt
    return {
      utilisation,
      matters,
      keys: matters ? keysThatMatter(counts, total, capacityPerSecond) : [],
      counts,
      total,
    }
  })
}

function keysThatMatter(counts: ReadonlyMap<number, number>, total: number, capacity: number): number[] {
  const least = leastPart * capacity
  const hottest = [...counts].filter(([, count]) => count >= least).sort((a, b) => b[1] - a[1] || a[0] - b[0])
  const keys: number[] = []
  let left = total
  for (const [key, count] of hottest) {
    if (left < mattersAt * capacity) break
    keys.push(key)
    left -= count
  }
  return keys
}

/** One time that a key was handled, from a tick on and up to another. */
export interface Action {
  readonly key: number
  readonly from: number
  readonly to: number
}

export interface Score {
  /** Keys × seconds that mattered. */
  readonly wanted: number
  /** Of these, the part that was handled for at least half of the second. */
  readonly recall: number
  readonly actions: number
  /** Actions in whose time no second mattered. */
  readonly needless: number
  /** Of the accesses above 70 % of the node's capacity, the part that was kept from it. */
  readonly loadKept: number
  /** Of all accesses of seconds that mattered, the part that was kept from the node. */
  readonly accessesKept: number
}

/** Holds what was done against what mattered. */
export function score(workload: Workload, seconds: readonly Second[], actions: readonly Action[]): Score {
  const ticks = workload.seconds * ticksPerSecond
  const handled = Array.from({ length: ticks }, () => new Set<number>())
  for (const { key, from, to } of actions) for (let at = from; at < Math.min(to, ticks); at++) handled[at]!.add(key)
  let [wanted, found, above, kept, accesses, keptAccesses] = [0, 0, 0, 0, 0, 0]
  for (const [second, { matters, keys, total }] of seconds.entries()) {
    if (!matters) continue
    let keptHere = 0
    for (let tick = 0; tick < ticksPerSecond; tick++) {
      const at = second * ticksPerSecond + tick
      const { counts } = workload.tick(at)
      for (const key of handled[at]!) keptHere += counts.get(key) ?? 0
    }
    wanted += keys.length
    const ticksOf = (key: number) =>
      Array.from({ length: ticksPerSecond }, (_, tick) => handled[second * ticksPerSecond + tick]!.has(key))
    for (const key of keys) if (ticksOf(key).filter(Boolean).length >= ticksPerSecond / 2) found++
    const excess = total - mattersAt * workload.capacityPerSecond
    above += excess
    kept += Math.min(excess, keptHere)
    accesses += total
    keptAccesses += keptHere
  }
  const isNeedless = ({ from, to }: Action) => {
    const [first, last] = [Math.floor((from - graceTicks) / ticksPerSecond), Math.ceil(to / ticksPerSecond)]
    return !seconds.slice(Math.max(0, first), Math.max(last, first + 1)).some(({ matters }) => matters)
  }
  return {
    wanted,
    recall: wanted === 0 ? 1 : found / wanted,
    actions: actions.length,
    needless: actions.filter(isNeedless).length,
    loadKept: above === 0 ? 1 : kept / above,
    accessesKept: accesses === 0 ? 1 : keptAccesses / accesses,
  }
}
