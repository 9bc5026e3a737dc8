import { seededRandom, type Trace } from '@firebreak/testkit'

/** Accesses of one tenth of a second, by key. */
export interface Tick {
  readonly counts: ReadonlyMap<number, number>
  readonly total: number
}

/** What comes to one node, tenth by tenth. */
export interface Workload {
  readonly name: string
  readonly keys: readonly string[]
  /** Operations a second at which the node is full. */
  readonly capacityPerSecond: number
  readonly seconds: number
  tick(index: number): Tick
}

export const ticksPerSecond = 10

/** How full the node would be in each second, unhandled; the keys are the trace's, in its order. */
export type Shape = (second: number, seconds: number, random: () => number) => number

/** Two days in fast motion: quiet, a rise, a peak above what is good, a fall; the second day's peak is higher and sudden. */
export const days: Shape = (second, seconds, random) => {
  const at = second / seconds
  const noise = 0.97 + random() * 0.06
  if (at < 0.5) return (0.25 + 0.55 * Math.max(0, Math.sin((at / 0.5) * Math.PI)) ** 2) * noise
  return (at > 0.65 && at < 0.85 ? 0.92 : 0.3) * noise
}

/** Busy, but never so that it matters. */
export const calm: Shape = (_second, _seconds, random) => 0.3 + random() * 0.05

/** Always as full, give or take 3 %. */
export function steady(utilisation: number): Shape {
  return (_second, _seconds, random) => utilisation * (0.97 + random() * 0.06)
}

/** `days`, `calm`, or a utilisation from 0 to 1, as people name a shape. */
export function parseShape(text: string): Shape {
  if (text === 'days') return days
  if (text === 'calm') return calm
  const utilisation = Number(text)
  if (utilisation > 0 && utilisation <= 2) return steady(utilisation)
  throw new Error(`--shape ${text}: days, calm, or how full the node is, such as 0.8`)
}

/** The same, at a part of the load. */
export function scaled(shape: Shape, part: number): Shape {
  return (second, seconds, random) => shape(second, seconds, random) * part
}

/**
 * A trace played on a node: its requests in their order, as many a second as the shape says; it begins again at its end. Each request
 * stands for `weight` accesses, so that a short trace keeps its own bursts on a node that does a hundred thousand a second.
 */
export function played(trace: Trace, shape: Shape, options: PlayOptions): Workload {
  const { capacityPerSecond, seconds, seed, weight } = options
  const random = seededRandom(seed)
  const loads = Array.from({ length: seconds }, (_, second) => shape(second, seconds, random))
  let next = 0
  const ticks = Array.from({ length: seconds * ticksPerSecond }, (_, index): Tick => {
    const wanted = (loads[Math.floor(index / ticksPerSecond)]! * capacityPerSecond) / ticksPerSecond
    const counts = new Map<number, number>()
    let total = 0
    while (total < wanted) {
      const id = trace.ids[next]!
      next = (next + 1) % trace.ids.length
      counts.set(id, (counts.get(id) ?? 0) + weight)
      total += weight
    }
    return { counts, total }
  })
  return { name: trace.name, keys: trace.keys, capacityPerSecond, seconds, tick: (index) => ticks[index]! }
}

export interface PlayOptions {
  readonly capacityPerSecond: number
  readonly seconds: number
  readonly seed: number
  /** @default 1 */
  readonly weight: number
}

/** A trace of many equal keys, and one more key that takes `part` of the node's capacity from a second on. */
export function surged(base: Workload, part: number, from: number, to: number): Workload {
  const key = base.keys.length
  const count = Math.round((part * base.capacityPerSecond) / ticksPerSecond)
  return {
    ...base,
    name: `${base.name}-surge`,
    keys: [...base.keys, 'surge'],
    tick(index) {
      const tick = base.tick(index)
      const second = index / ticksPerSecond
      if (second < from || second >= to) return tick
      return { counts: new Map(tick.counts).set(key, count), total: tick.total + count }
    },
  }
}

export interface BurstOptions {
  /** Keys that burst now and then. */
  readonly keys: number
  /** How many of them burst at a time. */
  readonly atOnce: number
  /** What one takes of the node's capacity while it does. */
  readonly part: number
  readonly seed: number
}

/** A base, and on top of it keys that burst for one to four tenths of a second each and then rest, again and again. */
export function bursting(base: Workload, { keys, atOnce, part, seed }: BurstOptions): Workload {
  const random = seededRandom(seed)
  const count = Math.round((part * base.capacityPerSecond) / ticksPerSecond)
  const first = base.keys.length
  const lengths = base.seconds * ticksPerSecond
  const burning = Array.from({ length: lengths }, () => new Set<number>())
  for (let lane = 0; lane < atOnce; lane++) {
    for (let at = 0; at < lengths; ) {
      const until = at + 1 + Math.floor(random() * 4)
      const key = first + Math.floor(random() * keys)
      for (; at < Math.min(until, lengths); at++) burning[at]!.add(key)
    }
  }
  return {
    ...base,
    name: `${base.name}-bursts`,
    keys: [...base.keys, ...Array.from({ length: keys }, (_, index) => `burst:${index}`)],
    tick(index) {
      const { counts, total } = base.tick(index)
      const all = new Map(counts)
      for (const key of burning[index]!) all.set(key, count)
      return { counts: all, total: total + count * burning[index]!.size }
    },
  }
}
