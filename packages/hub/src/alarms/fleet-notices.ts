/** Which of the hubs that share a store sends a notice: the first that asks. */
export interface NoticeClaims {
  /** True for one hub of all; the claim lapses unless it is extended. */
  take(name: string, forMs: number): Promise<boolean>
  extend(name: string, forMs: number): Promise<void>
  /** Ends a claim; true for one hub of all. */
  end(name: string): Promise<boolean>
}

/** Kinds of alarms that every hub of a fleet raises for the same reason. */
const fleetKinds: ReadonlySet<string> = new Set([
  'hot-key',
  'hub-lost',
  'rollout',
  'report-interval',
  'rules-newer',
  'rules-diverged',
  'board-reset',
])

/** Longer than hubs differ in what they see; where the whole fleet ends, its claims lapse. */
const claimMs = 60_000
const extendEveryMs = 10_000

export function isOfFleet(alarmId: string): boolean {
  return fleetKinds.has(alarmId.split(':')[0]!)
}

/**
 * Tells of alarms that concern the whole fleet once, whichever hub is first, and of all others from each hub. Without a
 * store that answers, every hub tells: twice is better than never.
 */
export class FleetNotices {
  readonly #claims: NoticeClaims | undefined
  /** Claimed names of alarms that last here, by their id. */
  readonly #lasting = new Map<string, Set<string>>()
  /** Claims in progress, by name: one that the store does not answer delays no other. */
  readonly #turns = new Map<string, Promise<void>>()
  #extendAt = 0

  constructor(claims: NoticeClaims | undefined) {
    this.#claims = claims
  }

  /** Calls `send` at once, or after this hub was found to be the one; notices of an alarm stay in order. */
  tell(way: string, event: 'raised' | 'cleared' | 'test', alarmId: string, send: () => void): void {
    const claims = this.#claims
    if (claims === undefined || event === 'test' || !isOfFleet(alarmId)) {
      send()
      return
    }
    const name = `${way}:${alarmId}`
    const names = this.#lasting.get(alarmId) ?? new Set()
    if (event === 'raised') this.#lasting.set(alarmId, names.add(name))
    const claim = () => (event === 'raised' ? claims.take(name, claimMs) : claims.end(name))
    const turn = (this.#turns.get(name) ?? Promise.resolve()).then(async () => {
      if (await claim().catch(() => true)) send()
      if (this.#turns.get(name) === turn) this.#turns.delete(name)
    })
    this.#turns.set(name, turn)
  }

  /** Called once a second: claims last as long as the alarm lasts at any hub. */
  watch(now: number, isRaised: (alarmId: string) => boolean): void {
    if (this.#claims === undefined || now < this.#extendAt) return
    this.#extendAt = now + extendEveryMs
    for (const [alarmId, names] of this.#lasting) {
      if (!isRaised(alarmId)) {
        this.#lasting.delete(alarmId)
        continue
      }
      for (const name of names) this.#claims.extend(name, claimMs).catch(() => {})
    }
  }

  /** Resolves once every notice so far was sent, or left to another hub. */
  async settled(): Promise<void> {
    await Promise.all(this.#turns.values())
  }
}
