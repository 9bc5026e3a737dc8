import type { AlarmBoard } from '../alarms/alarm-board.ts'

/** Silent for this long after it was last seen on the board, a hub is lost: a slow store is no loss. */
const lostAfterMs = 5000
/** A hub that was taken away for good is not missed forever. */
const missedMs = 3_600_000

interface MissedHub {
  readonly since: number
  /** Hubs while it was there, this one included. */
  readonly hubCount: number
}

/** Raises an alarm for a hub of the same store that vanished without leaving, and ends it. */
export class LostHubs {
  readonly #alarms: AlarmBoard
  readonly #present = new Set<string>()
  readonly #missed = new Map<string, MissedHub>()
  #hubCount = 1

  constructor(alarms: AlarmBoard) {
    this.#alarms = alarms
  }

  /** Called once a second with the other hubs that the board knows now, and those that say that they are leaving. */
  watch(others: ReadonlySet<string>, leaving: ReadonlySet<string>, now: number): void {
    for (const hubId of this.#present) {
      if (others.has(hubId)) continue
      this.#present.delete(hubId)
      this.#missed.set(hubId, { since: now, hubCount: this.#hubCount })
    }
    for (const hubId of others) {
      if (leaving.has(hubId)) this.#present.delete(hubId)
      else this.#present.add(hubId)
    }
    const hubCount = this.#present.size + 1
    for (const [hubId, { since, hubCount: before }] of this.#missed) {
      const isReplaced = hubCount >= before
      if (others.has(hubId) || isReplaced || now - since > missedMs) this.#missed.delete(hubId)
      else if (now - since >= lostAfterMs) this.#raise(hubId, hubCount)
    }
    this.#hubCount = Math.max(hubCount, ...[...this.#missed.values()].map((missed) => missed.hubCount))
    this.#alarms.keepOnly('hub-lost', new Set([...this.#missed.keys()].map((hubId) => `hub-lost:${hubId}`)))
  }

  #raise(hubId: string, hubCount: number): void {
    const left = hubCount === 1 ? '1 hub is left' : `${hubCount} hubs are left`
    const cause = `the hub ${hubId} is gone: it crashed, hangs, or does not reach the shared Redis; ${left}`
    const retry =
      'its sensors move to the others; see its log and start it again. Ends when it is back or replaced, or after an hour'
    this.#alarms.raise({ id: `hub-lost:${hubId}`, severity: 'warning', cause, retry })
  }
}
