import { DatabaseSync } from 'node:sqlite'
import {
  type Chance,
  type Fault,
  type FaultChoice,
  FaultPlayer,
  type FaultSchedule,
  type PlayResult,
  processFaults,
  randomSchedule,
  type SimulatedProcess,
  type SimulatedWorld,
} from '@firebreak/testkit'
import { IdsError } from '../errors.ts'
import { SegmentIds } from '../segment/segment-ids.ts'
import {
  type AllocatedSegment,
  readSchema,
  type SegmentStore,
  type SqlResult,
  SqlSegmentStore,
  type SqlStatement,
} from '../segment/segment-store.ts'

/*
 * Three services give ids of four tags from one table. They are killed and frozen, their clocks walk, the database is down,
 * slow, and loses answers to what it has done; and the table is put back to what it was some time ago, or emptied, whereupon
 * somebody adds the tags again from 1.
 *
 * Laws:
 *
 * - The ids of a tag ascend in each process.
 * - No id is given twice as long as the table never goes back, whatever else happens.
 * - Where it went back, an id of another process is given again only
 *   - where that process was dead, frozen or without the database in the `refreshEveryMs` after it, or
 *   - within that time, by a process whose own ids do not tell it that the table went back.
 * - A process that finds the table below its own ids says so.
 * - When all is well again, every process gives ids of every tag.
 *
 * `npm run simulate -- --mutants --model segments` takes each mend out and says which seed of the quick run finds it.
 */

/** What `npm test` plays. */
export const quickSegmentSeeds: readonly number[] = Array.from({ length: 5 }, (_, index) => index + 1)

const refreshEveryMs = 400
const settleMs = 700
/** A reading takes its time, and begins when the one before it has ended. */
const windowMs = refreshEveryMs + 150
const runMs = 15_000
const services = ['service-1', 'service-2', 'service-3']
const tags = ['order', 'user', 'bill', 'note']

const faults: FaultChoice[] = [
  { kind: 'goesBack', targets: ['*', ...tags], amount: [50, 1500], weight: 8 },
  { kind: 'emptied', targets: ['database'], amount: [20, 600], weight: 2 },
  { kind: 'kill', targets: services, forMs: [5, 1500], weight: 3 },
  { kind: 'freeze', targets: services, forMs: [5, 1500], weight: 2 },
  { kind: 'down', targets: ['database'], forMs: [20, 1200] },
  { kind: 'slow', targets: ['database'], forMs: [100, 1500], amount: [20, 100] },
  { kind: 'clockStep', targets: services, amount: [-5000, 5000] },
]

/** The faults of one run: 24, with some room around what puts the table back, so that not all of it is excused. */
export function segmentsSchedule(chance: Chance): FaultSchedule {
  const drawn = randomSchedule(chance, faults, { count: 24, fromMs: 1000, toMs: runMs - 2000 })
  let freeAt = 0
  return drawn.filter(({ kind, atMs, amount = 0 }) => {
    if (kind !== 'goesBack' && kind !== 'emptied') return true
    const isApart = atMs > freeAt
    if (isApart) freeAt = atMs + amount + settleMs
    return isApart
  })
}

/** A law of segments does not hold. */
export class SegmentLawBroken extends Error {}

/** The table, and what is done to it. */
class Table {
  readonly database = new DatabaseSync(':memory:')
  isDown = false
  slowMs = 0

  run(statements: readonly SqlStatement[]): SqlResult[] {
    return statements.map(({ sql, values }) => {
      const statement = this.database.prepare(sql)
      const bound = values.map((value) => (typeof value === 'number' ? BigInt(value) : value))
      if (/^\s*SELECT/i.test(sql)) return { rows: statement.all(...bound), changed: 0 }
      return { rows: [], changed: Number(statement.run(...bound).changes) }
    })
  }

  rows(): { biz_tag: string; max_id: number }[] {
    return this.database.prepare('SELECT biz_tag, max_id FROM leaf_alloc').all() as never
  }
}

/** One life of a service, as the oracle knows it. */
interface Life {
  readonly name: string
  readonly begunAt: number
  endedAt: number
  /** When it was given each segment, by tag: its first id, and when the database did it. */
  readonly segments: Map<string, { readonly from: bigint; readonly to: bigint; readonly at: number }[]>
  /** The end of its last segment, by tag. */
  readonly highest: Map<string, bigint>
  readonly last: Map<string, bigint>
  /** When it saw a tag's table below its own ids. */
  readonly saw: Map<string, number>
  readonly told: Set<string>
}

/** What is true of all ids, as an onlooker sees it. */
class Oracle {
  readonly #world: SimulatedWorld
  readonly #schedule: FaultSchedule
  readonly #given = new Map<string, Life>()
  /** When the table of a tag went back. */
  readonly #wentBack = new Map<string, number[]>()
  count = 0
  repeated = 0

  constructor(world: SimulatedWorld, schedule: FaultSchedule) {
    this.#world = world
    this.#schedule = schedule
  }

  wentBack(tag: string): void {
    this.#wentBack.set(tag, [...(this.#wentBack.get(tag) ?? []), this.#world.elapsedMs])
  }

  /** @param at when the database gave the segment; its answer comes later */
  allocated(life: Life, tag: string, { maxId, size }: AllocatedSegment, at: number): void {
    const from = maxId - BigInt(size)
    const highest = life.highest.get(tag) ?? 0n
    if (from < highest) {
      // Nothing of it may be given.
      life.saw.set(tag, this.#world.elapsedMs)
      return
    }
    life.highest.set(tag, maxId)
    const segments = life.segments.get(tag) ?? []
    life.segments.set(tag, [...segments, { from, to: maxId, at }])
  }

  gave(life: Life, tag: string, text: string): void {
    this.count++
    const id = BigInt(text)
    const last = life.last.get(tag) ?? 0n
    if (id <= last) throw new SegmentLawBroken(`${life.name} gave ${id} of ${tag} after ${last}`)
    life.last.set(tag, id)
    const first = this.#given.get(`${tag} ${id}`)
    this.#given.set(`${tag} ${id}`, life)
    if (first === undefined) return
    this.repeated++
    this.#judge(tag, id, life, first)
  }

  /** Two processes gave one id: whether that may be, by who had its segment first. */
  #judge(tag: string, id: bigint, one: Life, other: Life): void {
    const has = (life: Life) => life.segments.get(tag)?.findLast(({ from, to }) => from <= id && id < to)
    if (has(one) === undefined || has(other) === undefined)
      throw new SegmentLawBroken(`${id} of ${tag} is of no segment`)
    const [owner, taker] = has(one)!.at <= has(other)!.at ? [one, other] : [other, one]
    const { at } = has(taker)!
    const backAt = this.#wentBack.get(tag)?.findLast((time) => has(owner)!.at <= time && time <= at)
    const who = `${id} of ${tag} is of ${owner.name} and was given by ${taker.name}`
    if (backAt === undefined) throw new SegmentLawBroken(`${who}, although the table did not go back`)
    if (this.#isExcused(owner, backAt)) return
    if (at > backAt + windowMs) throw new SegmentLawBroken(`${who}, ${at - backAt} ms after it went back`)
    const sawAt = taker.saw.get(tag) ?? Number.POSITIVE_INFINITY
    if (backAt <= sawAt && sawAt <= at) throw new SegmentLawBroken(`${who}, which had seen that the table went back`)
  }

  /** Whether a life could not look at the table, all the while in which it should have. */
  #isExcused(life: Life, backAt: number): boolean {
    const until = backAt + windowMs
    if (life.begunAt > backAt || life.endedAt < until) return true
    return this.#schedule.some(({ kind, target, atMs, forMs = 0 }: Fault) => {
      const concerns = target === life.name || kind === 'down' || kind === 'slow'
      return concerns && forMs > 0 && atMs < until && atMs + forMs + refreshEveryMs > backAt
    })
  }
}

/** One run; throws where a law is broken. */
export async function playSegments(world: SimulatedWorld, schedule: FaultSchedule): Promise<PlayResult> {
  const table = new Table()
  table.database.exec(readSchema('sqlite'))
  const oracle = new Oracle(world, schedule)
  const addAll = (): void => {
    for (const tag of tags)
      table.database
        .prepare("INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES (?, 1, 3, '')")
        .run(tag)
  }
  addAll()
  const lives = new Map<string, { life: Life; process: SimulatedProcess; served: Map<string, number> }>()
  const begin = (name: string): void => {
    const process = world.process(name)
    const life: Life = {
      name,
      begunAt: world.elapsedMs,
      endedAt: Number.POSITIVE_INFINITY,
      segments: new Map(),
      highest: new Map(),
      last: new Map(),
      saw: new Map(),
      told: new Set(),
    }
    const served = new Map<string, number>()
    lives.set(name, { life, process, served })
    process.start(() => live(process, storeOf(process, table, oracle, life), oracle, life, served))
  }
  const setBack = (rows: ReadonlyMap<string, number>, only: string): void => {
    for (const { biz_tag: tag, max_id: now } of table.rows()) {
      const then = rows.get(tag)
      if (then === undefined || then >= now || (only !== '*' && only !== tag)) continue
      table.database.prepare('UPDATE leaf_alloc SET max_id = ? WHERE biz_tag = ?').run(then, tag)
      oracle.wentBack(tag)
    }
  }
  const player = new FaultPlayer(world).can(
    processFaults(
      services.map((name) => ({ name, current: () => lives.get(name)!.process, restart: () => begin(name) })),
    ),
  )
  player.can({
    kill: ({ target }) => {
      lives.get(target)!.life.endedAt = world.elapsedMs
      return undefined
    },
    goesBack: ({ target, amount = 0 }) => {
      const then = new Map(table.rows().map((row) => [row.biz_tag, row.max_id]))
      world.schedule(amount, () => setBack(then, target))
      return undefined
    },
    emptied: ({ amount = 0 }) => {
      table.database.exec('DELETE FROM leaf_alloc')
      world.schedule(amount, () => {
        addAll()
        for (const tag of tags) oracle.wentBack(tag)
      })
      return undefined
    },
    down: () => {
      table.isDown = true
      return () => {
        table.isDown = false
      }
    },
    slow: ({ amount = 0 }) => {
      table.slowMs = amount
      return () => {
        table.slowMs = 0
      }
    },
  })
  for (const name of services) begin(name)
  player.play(schedule)
  await world.run(runMs)
  player.undoAll()
  await world.run(5000)
  for (const { life, served } of lives.values()) {
    for (const tag of tags) {
      if (world.elapsedMs - (served.get(tag) ?? 0) > 1000)
        throw new SegmentLawBroken(`${life.name} gives no ids of ${tag} in peace`)
      if (life.saw.has(tag) && !life.told.has('FB_IDS_SEGMENT_BACKWARD'))
        throw new SegmentLawBroken(`${life.name} saw that ${tag} went back, and did not say so`)
    }
  }
  table.database.close()
  return { calls: oracle.count, faults: schedule.length }
}

/** The table as one process reaches it: over a way that takes time and loses answers. */
function storeOf(process: SimulatedProcess, table: Table, oracle: Oracle, life: Life): SegmentStore {
  const { chance } = process
  const ways = async <T>(does: () => T): Promise<T> => {
    await process.sleep(chance.between(0.2, 8) + table.slowMs)
    if (table.isDown) throw new Error('connect ECONNREFUSED')
    const result = does()
    await process.sleep(chance.between(0.2, 8) + table.slowMs)
    if (chance.next() < 0.02) throw new Error('the connection was lost')
    return result
  }
  const open = (onRun: () => void = () => {}) =>
    new SqlSegmentStore({
      name: 'table',
      schema: readSchema('sqlite'),
      textType: 'TEXT',
      transaction: (statements) =>
        ways(() => {
          onRun()
          return table.run(statements)
        }),
      isDuplicate: () => false,
      close: async () => {},
    })
  const inner = open()
  return {
    name: inner.name,
    prepare: async () => {},
    rows: () => inner.rows(),
    raise: (tag, maxId) => inner.raise(tag, maxId),
    add: (...args) => inner.add(...args),
    close: async () => {},
    async allocate(tag, size) {
      let at = 0
      const noted = open(() => {
        at = process.world.elapsedMs
      })
      const segment = await noted.allocate(tag, size)
      oracle.allocated(life, tag, segment, at)
      return segment
    },
  }
}

/** Gives ids of all tags until its process ends. */
async function live(
  process: SimulatedProcess,
  store: SegmentStore,
  oracle: Oracle,
  life: Life,
  served: Map<string, number>,
): Promise<void> {
  const { chance, runtime, world } = process
  const ids = await SegmentIds.start({
    stores: [store],
    refreshEveryMs,
    settleMs,
    waitTimeoutMs: 200,
    retryMs: 50,
    onAlarm: ({ code }) => life.told.add(code),
    runtime,
  })
  for (;;) {
    const tag = chance.pick(tags)
    try {
      for (let left = chance.below(60); left >= 0; left--) {
        oracle.gave(life, tag, ids.take(tag) ?? (await ids.next(tag)))
        served.set(tag, world.elapsedMs)
      }
    } catch (error) {
      if (!(error instanceof IdsError)) throw error
    }
    await process.sleep(chance.between(1, 25))
  }
}
