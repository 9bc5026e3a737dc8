import { systemTimers } from '@firebreak/core'
import { parseRule } from '@firebreak/core/rules'
import { HubCore, MemoryStore } from '@firebreak/hub'
import { FakeClock, fakeRuntime } from '@firebreak/testkit'

/** A whole hub but for its network, which takes the bench's reports at the bench's times. */
export class HubIngest {
  readonly core: HubCore
  readonly #clock: FakeClock
  readonly #startMs: number
  #sequence = 0

  private constructor(core: HubCore, clock: FakeClock) {
    this.core = core
    this.#clock = clock
    this.#startMs = clock.now()
  }

  static async open(threshold: number, windowMs: number, ingestThreads = 0): Promise<HubIngest> {
    const clock = new FakeClock()
    // The reports' own times say nothing here: they are made before the hub starts.
    // Batches for the threads are what comes in one turn of the event loop, as in a real process.
    const timers = {
      setTimeout: clock.setTimeout.bind(clock),
      setInterval: clock.setInterval.bind(clock),
      setImmediate: systemTimers.setImmediate.bind(systemTimers),
    }
    const options = {
      runtime: { ...fakeRuntime(1, clock), timers },
      loadOf: () => 0,
      maxReportAgeMs: 3_600_000,
      ingestThreads,
    }
    const core = await HubCore.open(new MemoryStore(), options)
    await core.putRule(parseRule({ id: 'hot', glob: '*', threshold, windowMs, minHoldMs: 1000 }), 'bench')
    core.start()
    return new HubIngest(core, clock)
  }

  /** Takes a report; gives its entries. */
  take(report: Buffer, nowMs: number): number {
    const { collector } = this.core
    this.#clock.advance(this.#startMs + nowMs - this.#clock.now())
    const before = collector.entryCount
    collector.collectBinary(report, 0, ++this.#sequence)
    return collector.entryCount - before
  }

  /** The same, but waits while the threads have enough to do. */
  async feed(report: Buffer, nowMs: number): Promise<number> {
    if (!this.core.intake.hasRoom) await this.settled()
    return this.take(report, nowMs)
  }

  /** Resolves when all that was taken has been counted and decided. */
  settled(): Promise<void> {
    return this.core.intake.inTurn(() => {})
  }

  close(): Promise<void> {
    return this.core.close()
  }
}
