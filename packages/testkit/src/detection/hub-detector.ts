import { parseKeyText, type TableDelta } from '@firebreak/core'
import { parseRule, type Rule } from '@firebreak/core/rules'
import { FakeClock } from '../time/fake-clock.ts'
import { fakeRuntime } from '../time/fake-runtime.ts'
import type { DetectionRule, Detector } from './detector.ts'
import { replayedService } from './simulated-host.ts'

/** What a replay needs of a hub without a network. */
export interface ReplayedHub {
  readonly collector: {
    readonly governor: { readonly pace: { readonly samplingFloor: number } }
    collectBinary(report: Uint8Array, start: number, sequence: number): void
  }
  readonly delivery: { join(serviceId: string, listener: { onDelta(delta: TableDelta): void }): unknown }
  readonly hubCount: number
  rules(): { readonly rules: readonly Rule[] }
  putRule(rule: Rule, who: string): Promise<void>
  start(): void
  settled(): Promise<void>
  close(): Promise<void>
}

/** What a replay gives a hub to live by. */
export interface ReplayedLife {
  /** Options of its core. */
  readonly options: ReturnType<typeof optionsOf>
  /** The clock of what it shares with the others. */
  readonly sharedClock: FakeClock
}

/** How often hosts report is the replay's; how thinly they sample, the hub's. */
function optionsOf(hubId: string, clock: FakeClock, reportIntervalMs: number, maxEntriesPerSecond: number) {
  const pace = { reportIntervalMs, maxReportsPerSecond: 1e9, maxEntriesPerSecond, loadOf: () => 0 }
  return { hubId, runtime: { ...fakeRuntime(1, clock), random: () => 0.5 }, ...pace }
}

interface Member {
  readonly hub: ReplayedHub
  readonly clock: FakeClock
  readonly startMs: number
  readonly table: Set<string>
}

/** How far the clock of each hub is ahead of the one before: theirs need not agree. */
const skewMs = 3_600_137
/** Steps in which hubs on one store have found each other and the rule. */
const maxMeetingSteps = 100

/**
 * Hubs on clocks that the replay moves; each host reports to one of them. With every report, and in every step one after the
 * other, a hub does all that it does by then before anything else happens. So a replay on hubs that share a real Redis comes
 * out the same each time, and nothing is late, however slow the machine is.
 */
export class HubDetector implements Detector {
  /** How often hubs look at the outboxes that they share. */
  readonly stepMs = 50
  readonly #members: readonly Member[]
  readonly #sharedClock: FakeClock
  readonly #sharedStartMs: number
  readonly #alarms: string[] = []
  #sequence = 0

  private constructor(members: readonly Member[], sharedClock: FakeClock) {
    this.#members = members
    this.#sharedClock = sharedClock
    this.#sharedStartMs = sharedClock.now()
    for (const { hub, table } of members) {
      hub.delivery.join(replayedService, { onDelta: (delta) => this.#follow(table, delta) })
    }
  }

  /** Opens hubs, gives them the rule, and waits until each knows it and all others. */
  static async open(
    rule: DetectionRule,
    hubCount: number,
    openHub: (life: ReplayedLife) => Promise<ReplayedHub>,
  ): Promise<HubDetector> {
    const sharedClock = new FakeClock()
    const members: Omit<Member, 'startMs'>[] = []
    for (let nth = 0; nth < hubCount; nth++) {
      const clock = new FakeClock(sharedClock.now() + nth * skewMs)
      const options = optionsOf(`hub-${nth}`, clock, rule.intervalMs, rule.rowsPerSecond / hubCount)
      const hub = await openHub({ options, sharedClock })
      hub.start()
      members.push({ hub, clock, table: new Set() })
    }
    const { threshold, exit, windowMs, minHoldMs } = rule
    const level = { threshold, exit, windowMs, minHoldMs, strategy: 'Observe' }
    await members[0]!.hub.putRule(parseRule({ id: 'hot', glob: '*', ...level }), 'replay')
    const haveMet = () => members.every(({ hub }) => hub.hubCount === hubCount && hub.rules().rules.length === 1)
    for (let step = 0; !haveMet(); step++) {
      if (step >= maxMeetingSteps) throw new Error(`${hubCount} hubs on one store did not find each other`)
      sharedClock.step(100)
      for (const { hub, clock } of members) {
        clock.advance(100)
        await hub.settled()
      }
    }
    const started = members.map((member) => ({ ...member, startMs: member.clock.now() }))
    return new HubDetector(started, sharedClock)
  }

  async take(report: Uint8Array, host: number, atMs: number): Promise<void> {
    const { hub, clock, startMs } = this.#members[host % this.#members.length]!
    this.#moveSharedClock(atMs)
    clock.step(startMs + atMs - clock.now())
    hub.collector.collectBinary(report, 0, ++this.#sequence)
    // A crossing does not wait for the next step.
    await hub.settled()
  }

  async moveTo(atMs: number): Promise<void> {
    this.#moveSharedClock(atMs)
    for (const { hub, clock, startMs } of this.#members) {
      clock.advance(startMs + atMs - clock.now())
      await hub.settled()
    }
  }

  factorOf(host: number): number {
    return this.#members[host % this.#members.length]!.hub.collector.governor.pace.samplingFloor
  }

  hot(): ReadonlySet<string> {
    const [first, ...others] = this.#members.map(({ table }) => table)
    return new Set([...first!].filter((key) => others.every((table) => table.has(key))))
  }

  takeAlarms(): readonly string[] {
    return this.#alarms.splice(0)
  }

  async close(): Promise<void> {
    await Promise.all(this.#members.map(({ hub }) => hub.close()))
  }

  #moveSharedClock(atMs: number): void {
    this.#sharedClock.step(this.#sharedStartMs + atMs - this.#sharedClock.now())
  }

  #follow(table: Set<string>, { set, removed }: TableDelta): void {
    for (const { key: text } of set) {
      const key = parseKeyText(text)!
      if (!table.has(key)) this.#alarms.push(key)
      table.add(key)
    }
    for (const { key } of removed) table.delete(parseKeyText(key)!)
  }
}
