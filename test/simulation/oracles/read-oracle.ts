import type { SimulatedWorld } from '@firebreak/testkit'
import { kindOf, passingMs } from '../fleet/keys.ts'
import { BrokenLaw, type LawName } from './laws.ts'

interface Acknowledged {
  readonly atMs: number
  readonly version: number
}

/** What everybody knows of one key since the server last lost writes. */
interface KnownKey {
  /** Acknowledged writes in order of time, each with the highest version until then. */
  acknowledged: Acknowledged[]
  /** No read can show more: what stood when writes were lost, and all writes that were begun since or not answered then. */
  highest: number
  /** Writes that were started and never answered: they may still happen. */
  unanswered: number
}

/** A read or write in progress, with what must be true of its reply. */
export interface Begun {
  readonly key: string
  readonly client: string
  readonly atMs: number
  readonly epoch: number
  /** The client has read this version, or written it. */
  readonly seen: number
  readonly own: number
  /** Acknowledged so long ago that every guard has ended. */
  readonly oldest: number
}

interface Seen {
  epoch: number
  read: number
  own: number
}

/**
 * Versions: every write of a key raises its version by one, and its reply is the version. A read is judged by what was
 * known when it began: what its client has seen and written, and what anybody had acknowledged longer ago than the
 * key's guard allows.
 */
export class ReadOracle {
  readonly #world: SimulatedWorld
  readonly #stalenessMs: (key: string) => number
  readonly #keys = new Map<string, KnownKey>()
  readonly #seen = new Map<string, Seen>()
  readonly #passing = new Map<string, number>()
  #epoch = 0
  #lostAtMs = 0
  /** True once the server's own clock was set: then its TTLs do not follow the world's time. */
  hasOddClock = false
  reads = 0

  /** `stalenessMs`: by how much a read of a key may be behind when its guard dies. */
  constructor(world: SimulatedWorld, stalenessMs = (key: string) => kindOf(key).maxStalenessMs) {
    this.#world = world
    this.#stalenessMs = stalenessMs
  }

  /** Counts the times that the server lost writes. */
  get epoch(): number {
    return this.#epoch
  }

  /** The server has lost writes; `versions` is what it holds now. */
  lostWrites(versions: ReadonlyMap<string, number>): void {
    this.#epoch++
    this.#lostAtMs = this.#world.elapsedMs
    for (const [key, version] of versions) {
      const { unanswered } = this.#known(key)
      this.#keys.set(key, { acknowledged: [], highest: version + unanswered, unanswered })
    }
    this.#passing.clear()
  }

  begin(client: string, key: string, isWrite: boolean): Begun {
    const known = this.#known(key)
    if (isWrite) {
      known.highest++
      known.unanswered++
    }
    const seen = this.#seenBy(client, key)
    const atMs = this.#world.elapsedMs
    const before = atMs - this.#stalenessMs(key)
    let oldest = 0
    for (let index = known.acknowledged.length - 1; index >= 0; index--) {
      const each = known.acknowledged[index]!
      if (each.atMs >= before) continue
      oldest = each.version
      break
    }
    return { key, client, atMs, epoch: this.#epoch, seen: seen.read, own: seen.own, oldest }
  }

  /** A write was acknowledged with a version; `wasUnderWay` if its key became hot meanwhile, which no guard can know. */
  wrote(begun: Begun, reply: unknown, wasUnderWay = false): void {
    const version = this.#versionOf(begun, reply)
    const known = this.#known(begun.key)
    known.unanswered--
    if (begun.epoch !== this.#epoch) return
    const { acknowledged } = known
    const highest = Math.max(version, acknowledged.at(-1)?.version ?? 0)
    acknowledged.push({ atMs: this.#world.elapsedMs, version: highest })
    if (wasUnderWay) return
    const seen = this.#seenBy(begun.client, begun.key)
    seen.own = Math.max(seen.own, version)
  }

  /**
   * A read was answered; `floor` is a version that was written before it on the same connection. Where its key became hot
   * while it was under way (`wasUnderWay`), it may have seen more than memory has for as long as its guard lasts.
   */
  read(begun: Begun, reply: unknown, by: string, { floor = 0, wasUnderWay = false } = {}): void {
    this.reads++
    const version = this.#versionOf(begun, reply)
    if (begun.epoch !== this.#epoch) return
    const says = (what: string, law: LawName): never =>
      this.#broken(law, `${begun.client} read ${begun.key} = ${version} from ${by}, ${what}`)
    if (version < floor) says(`behind its own write of ${floor}, which it had sent before`, 'ownWrites')
    if (version < begun.own) says(`and had written ${begun.own}`, 'ownWrites')
    if (version < begun.seen) says(`and had read ${begun.seen} before`, 'order')
    if (version < begun.oldest && !this.hasOddClock) {
      says(`${begun.oldest} was acknowledged more than ${this.#stalenessMs(begun.key)} ms before`, 'stale')
    }
    // Guards may serve lost values until they end: that says nothing about the current data.
    const isBehindLoss = this.#epoch === 0 || begun.atMs - this.#lostAtMs > this.#stalenessMs(begun.key)
    const { highest } = this.#known(begun.key)
    if (version > highest && isBehindLoss) says(`and only ${highest} were written`, 'stale')
    if (wasUnderWay || (!isBehindLoss && by !== 'redis')) return
    const seen = this.#seenBy(begun.client, begun.key)
    seen.read = Math.max(seen.read, version)
  }

  /** A value that lives for `passingMs` was acknowledged. */
  setPassing(value: string): void {
    this.#passing.set(value, this.#world.elapsedMs + passingMs)
  }

  /** Such a value was read by a call that began then. */
  readPassing(client: string, key: string, value: unknown, begunAtMs: number, by: string): void {
    if (typeof value !== 'string' || this.hasOddClock) return
    const endsAtMs = this.#passing.get(value)
    // Redis counts whole milliseconds, and a key expires after its last one.
    if (endsAtMs !== undefined && begunAtMs > endsAtMs + 2) {
      this.#broken('ttl', `${client} read ${key} from ${by} ${(begunAtMs - endsAtMs).toFixed(1)} ms after its end`)
    }
  }

  #versionOf({ client, key }: Begun, reply: unknown): number {
    const version = reply === null ? 0 : Number(reply)
    if (!Number.isSafeInteger(version)) this.#broken('sameReplies', `${client} was told ${String(reply)} of ${key}`)
    return version
  }

  #known(key: string): KnownKey {
    let known = this.#keys.get(key)
    if (known === undefined) this.#keys.set(key, (known = { acknowledged: [], highest: 0, unanswered: 0 }))
    return known
  }

  #seenBy(client: string, key: string): Seen {
    const id = `${client} ${key}`
    let seen = this.#seen.get(id)
    if (seen === undefined) this.#seen.set(id, (seen = { epoch: this.#epoch, read: 0, own: 0 }))
    if (seen.epoch !== this.#epoch) Object.assign(seen, { epoch: this.#epoch, read: 0, own: 0 })
    return seen
  }

  #broken(law: LawName, detail: string): never {
    const error = new BrokenLaw(law, detail)
    this.#world.fail(error)
    throw error
  }
}
