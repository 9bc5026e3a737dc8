import { encodeBinaryReport, type StatusPayload, type TableEntry } from '@firebreak/core'
import { parseRule } from '@firebreak/core/rules'
import { FakeClock, fakeRuntime } from '@firebreak/testkit'
import { HubCore } from '../hub-core.ts'
import type { HubCoreOptions } from '../hub-options.ts'
import { openRedisStore } from '../store/open-redis-store.ts'

/** The counters of a shield that has done nothing. */
export const noCounts: StatusPayload['counters'] = {
  reads: 0,
  writes: 0,
  localHits: 0,
  loads: 0,
  bypasses: 0,
  invalidations: 0,
  flushes: 0,
  limited: 0,
  copyReads: 0,
  droppedReports: 0,
  errors: 0,
}

/** Names the Redis keys of each run. */
let runs = 0

/** Several hubs on one real Redis; their time and the board's advance together, and only when told. */
export class SharedHubs {
  cores: readonly HubCore[]
  readonly clock: FakeClock
  #sequence = 0

  private constructor(cores: readonly HubCore[], clock: FakeClock) {
    this.cores = cores
    this.clock = clock
  }

  static async open(
    url: string,
    count: number,
    rules: readonly object[],
    options: HubCoreOptions = {},
  ): Promise<SharedHubs> {
    const clock = new FakeClock()
    const prefix = `shared-${process.pid}-${runs++}`
    const cores: HubCore[] = []
    for (let nth = 0; nth < count; nth++) {
      const runtime = fakeRuntime(nth, clock)
      const store = await openRedisStore(url, { prefix, testClock: clock, newId: runtime.newId })
      cores.push(await HubCore.open(store, { hubId: `hub-${nth}`, runtime, loadOf: () => 0, ...options }))
    }
    const hubs = new SharedHubs(cores, clock)
    for (const core of cores) core.start()
    for (const rule of rules) await cores[0]!.putRule(parseRule(rule), 'test')
    const haveMet = () => cores.every((core) => core.hubCount === count && core.rules().rules.length === rules.length)
    for (let step = 0; !haveMet(); step++) {
      if (step > 100) throw new Error(`${count} hubs on one store did not find each other`)
      await hubs.advance(100)
    }
    return hubs
  }

  /** From now on a hub does nothing of what is due. */
  forget(core: HubCore): void {
    this.cores = this.cores.filter((one) => one !== core)
  }

  /** Advances time in steps; in each, every hub does all that is due. */
  async advance(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 50) {
      this.clock.advance(50)
      // Twice, so that by the end of the step the others have read what the last hub posted.
      for (const core of [...this.cores, ...this.cores]) await core.settled()
    }
  }

  /** Reports counts as a process of `shop` at this hub. */
  report(hub: number, counts: Record<string, number>): void {
    const now = this.clock.now()
    const entries = Object.entries(counts).map(([key, count]) => ({ key, count, writes: 0, bytes: 0 }))
    const head = { collectTs: now, sendTs: now, serviceId: 'shop', hostId: `host-${hub}`, instanceId: `i-${hub}` }
    const report = encodeBinaryReport({ ...head, sections: [{ redisClusterId: 'main', entries }] })
    this.cores[hub]!.collector.collectBinary(report, 0, ++this.#sequence)
  }

  /** Reports what that process' cache has done for a key since its last status. */
  tell(hub: number, key: string, localHits: number, redisReads: number): void {
    const core = this.cores[hub]!
    const instance = core.fleet.hosts.find('shop', `host-${hub}`, `i-${hub}`, this.clock.now())!
    const effect = { redisClusterId: 'main', key, localHits, redisReads, bytesSaved: 0, limited: 0, errors: 0 }
    const about = { sentAt: this.clock.now(), epoch: '', version: 0, isOff: false, watchers: [] }
    core.fleet.takeStatus(instance, { ...about, counters: noCounts, keys: [effect] })
  }

  /** A key's entry in each hub's table for `shop`. */
  entries(key: string): (TableEntry | undefined)[] {
    return this.cores.map((core) => [...core.delivery.view('shop').entries()].find((entry) => entry.key === key))
  }

  strategies(key: string): (string | undefined)[] {
    return this.entries(key).map((entry) => entry?.strategy.strategy)
  }

  /** What the store has recorded about a key, oldest first. */
  async events(key: string): Promise<{ kind: string; at: number; text: string }[]> {
    await Promise.all(this.cores.map((core) => core.stored()))
    const events = await this.cores[0]!.store.history({ key, limit: 100 })
    return events.map(({ kind, at, text }) => ({ kind, at, text })).reverse()
  }

  async close(): Promise<void> {
    await Promise.all(this.cores.map((core) => core.close()))
  }
}
