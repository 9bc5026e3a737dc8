import { encodeBinaryReport, type Report, type TableDelta, type TableEntry } from '@firebreak/core'
import { parseRule } from '@firebreak/core/rules'
import { FakeClock, fakeRuntime } from '@firebreak/testkit'
import { HubCore } from '../hub-core.ts'
import type { HubCoreOptions } from '../hub-options.ts'
import type { HubStore } from '../store/hub-store.ts'
import { MemoryStore } from '../store/memory-store.ts'

/** A hub's core on a fake clock, with helpers to feed and inspect it. */
export class TestCore {
  readonly clock: FakeClock
  readonly core: HubCore
  readonly store: HubStore
  #sequence = 0

  private constructor(core: HubCore, clock: FakeClock, store: HubStore) {
    this.core = core
    this.clock = clock
    this.store = store
  }

  static async open(
    rules: readonly Record<string, unknown>[],
    options: HubCoreOptions = {},
    store: HubStore = new MemoryStore(),
    clock: FakeClock = new FakeClock(),
  ): Promise<TestCore> {
    const core = await HubCore.open(store, {
      runtime: { ...fakeRuntime(1, clock), random: () => 0.5 },
      loadOf: () => 0,
      ...options,
    })
    for (const rule of rules) await core.putRule(parseRule(rule), 'test')
    core.start()
    return new TestCore(core, clock, store)
  }

  /** Reports counts as a process whose clock is the hub's. */
  report(
    counts: Record<string, number | { count: number; writes?: number; bytes?: number }>,
    changes: Partial<Report> = {},
  ): void {
    const now = this.clock.now()
    const entries = Object.entries(counts).map(([key, value]) =>
      typeof value === 'number' ? { key, count: value, writes: 0, bytes: 0 } : { key, writes: 0, bytes: 0, ...value },
    )
    const report: Report = {
      collectTs: now,
      sendTs: now,
      serviceId: 'shop',
      hostId: 'host-1',
      instanceId: 'i1',
      sections: [{ redisClusterId: 'main', entries }],
      ...changes,
    }
    this.core.collector.collectBinary(encodeBinaryReport(report), 0, ++this.#sequence)
  }

  /** Reports the same counts every 100 ms for a while. */
  keepReporting(ms: number, counts: Record<string, number>, changes: Partial<Report> = {}): void {
    for (let passed = 0; passed < ms; passed += 100) {
      this.report(counts, changes)
      this.clock.advance(100)
    }
  }

  /** A key's entry in the table for a service. */
  entry(key: string, serviceId = 'shop'): TableEntry | undefined {
    return [...this.core.delivery.view(serviceId).entries()].find((entry) => entry.key === key)
  }

  phase(key: string): string {
    return this.core.engine.get('main', key)?.tracks[0]?.state?.phase ?? 'cold'
  }

  /** Joins a listener; the list fills with deltas. */
  listen(serviceId = 'shop'): TableDelta[] {
    const deltas: TableDelta[] = []
    this.core.delivery.join(serviceId, { onDelta: (delta) => deltas.push(delta) })
    return deltas
  }

  async kinds(key?: string): Promise<string[]> {
    await this.core.stored()
    const events = await this.store.history({ limit: 1000, ...(key !== undefined && { key }) })
    return events.map(({ kind }) => kind).reverse()
  }
}
