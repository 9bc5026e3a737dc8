import type { Clock } from '@firebreak/core'
import type { HeldLockRow, LockReport, WaitingTaskRow } from '@firebreak/locks'
import { processName } from '../fleet/process-name.ts'

/** Who reported a row. */
interface Reporter {
  readonly serviceId: string
  readonly hostId: string
  readonly instanceId: string
}

/** One lock of one name and kind, over all processes that hold it or wait for it. */
export interface LockOverview {
  readonly name: string
  readonly kind: HeldLockRow['kind']
  readonly holders: (Reporter & Omit<HeldLockRow, 'name' | 'kind'>)[]
  readonly waiters: (Reporter & Omit<WaitingTaskRow, 'name' | 'kind'>)[]
}

/** Totals over all processes. */
export interface LockTotals {
  readonly held: number
  readonly waiting: number
  readonly acquired: number
  readonly contended: number
  readonly handedOver: number
  readonly refused: number
  readonly lostExpired: number
  readonly lostTaken: number
  readonly waitMsSum: number
  readonly waitMsMax: number
  readonly holdMsSum: number
  readonly holdMsMax: number
}

/** One process that reports, with its own totals. */
export interface LockInstance extends Reporter, LockTotals {
  /** Milliseconds since its last report. */
  readonly ageMs: number
}

/** A lock that a process should give up, identified by kind and token. */
export interface LockRelease {
  readonly kind: HeldLockRow['kind']
  readonly token: number
}

interface Entry {
  readonly report: LockReport
  readonly receivedAt: number
  /** What its process should give up; sent with the answer to its next report. */
  readonly releases: LockRelease[]
  readonly bytes: number
}

/** The same id from another service is a different process. */
function idOf({ serviceId, instanceId }: LockReport): string {
  return processName(serviceId, instanceId)
}

/** The newest report of each process; a process that stops reporting is forgotten when its report expires. */
export class LockBoard {
  readonly #clock: Clock
  readonly #maxInstances: number
  readonly #maxBytes: number
  readonly #entries = new Map<string, Entry>()
  /** Bytes of names and owners, by service. */
  readonly #bytes = new Map<string, number>()
  /** Reports refused because there were too many processes. */
  refused = 0

  constructor(clock: Clock, maxInstances: number, maxBytes = 64 << 20) {
    this.#clock = clock
    this.#maxInstances = maxInstances
    this.#maxBytes = maxBytes
  }

  /** Locks that a process has lost since its previous report. */
  lostSince(report: LockReport): number {
    const { lost } = report.metrics
    const before = this.#entries.get(idOf(report))?.report.metrics.lost ?? { expired: 0, taken: 0 }
    return Math.max(0, lost.expired - before.expired) + Math.max(0, lost.taken - before.taken)
  }

  /** False when the board is full. */
  put(report: LockReport): boolean {
    this.#expire()
    const before = this.#entries.get(idOf(report))
    const isFull = before === undefined && this.#entries.size >= this.#maxInstances
    const bytes = bytesOf(report)
    if (isFull || !this.#hasRoom(report, bytes - (before?.bytes ?? 0))) {
      this.refused++
      return false
    }
    this.#addBytes(report, bytes - (before?.bytes ?? 0))
    this.#entries.set(idOf(report), { report, receivedAt: this.#clock.now(), releases: [], bytes })
    return true
  }

  #hasRoom({ serviceId }: LockReport, more: number): boolean {
    const all = [...this.#bytes.values()].reduce((sum, bytes) => sum + bytes, 0)
    const own = this.#bytes.get(serviceId) ?? 0
    return more <= 0 || (all + more <= this.#maxBytes && own + more <= this.#maxBytes / 2)
  }

  #addBytes({ serviceId }: LockReport, more: number): void {
    const bytes = (this.#bytes.get(serviceId) ?? 0) + more
    if (bytes > 0) this.#bytes.set(serviceId, bytes)
    else this.#bytes.delete(serviceId)
  }

  /** What the process of this report should give up; each is sent once. */
  takeReleases(report: LockReport): readonly LockRelease[] {
    return this.#entries.get(idOf(report))?.releases.splice(0) ?? []
  }

  /** Asks the holders of a lock to release it at their next report; returns the holders. */
  release(kind: LockOverview['kind'], name: string): Reporter[] {
    this.#expire()
    const asked: Reporter[] = []
    for (const { report, releases } of this.#entries.values()) {
      const { serviceId, hostId, instanceId } = report
      const held = report.held.filter((row) => row.kind === kind && row.name === name)
      releases.push(...held.map(({ token }) => ({ kind, token })))
      if (held.length > 0) asked.push({ serviceId, hostId, instanceId })
    }
    return asked
  }

  /** The locks whose names start with a prefix, those with the most waiters first. */
  locks(prefix = ''): LockOverview[] {
    this.#expire()
    const byName = new Map<string, LockOverview>()
    const overview = ({ name, kind }: { readonly name: string; readonly kind: LockOverview['kind'] }) => {
      const id = `${kind} ${name}`
      const known = byName.get(id) ?? { name, kind, holders: [], waiters: [] }
      byName.set(id, known)
      return known
    }
    for (const { report } of this.#entries.values()) {
      const { serviceId, hostId, instanceId } = report
      for (const { name, kind, ...row } of report.held) {
        if (name.startsWith(prefix)) overview({ name, kind }).holders.push({ serviceId, hostId, instanceId, ...row })
      }
      for (const { name, kind, ...row } of report.waiting) {
        if (name.startsWith(prefix)) overview({ name, kind }).waiters.push({ serviceId, hostId, instanceId, ...row })
      }
    }
    return [...byName.values()].sort(
      (a, b) => b.waiters.length - a.waiters.length || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0),
    )
  }

  instances(): LockInstance[] {
    this.#expire()
    const now = this.#clock.now()
    return [...this.#entries.values()].map(({ report, receivedAt }) => ({
      serviceId: report.serviceId,
      hostId: report.hostId,
      instanceId: report.instanceId,
      ageMs: now - receivedAt,
      ...totalsOf(report),
    }))
  }

  totals(): LockTotals {
    this.#expire()
    return [...this.#entries.values()].map(({ report }) => totalsOf(report)).reduce(addTotals, noTotals)
  }

  #expire(): void {
    const now = this.#clock.now()
    for (const [instanceId, { report, receivedAt, bytes }] of this.#entries) {
      if (now - receivedAt <= report.validMs) continue
      this.#entries.delete(instanceId)
      this.#addBytes(report, -bytes)
    }
  }
}

/** The size of a report: its names and owners, plus overhead per row. */
function bytesOf({ held, waiting }: LockReport): number {
  const rows = [...held, ...waiting]
  return rows.reduce((sum, { name, owner }) => sum + name.length + owner.length + rowBytes, reportBytes)
}

const rowBytes = 128
const reportBytes = 1024

const noTotals: LockTotals = {
  held: 0,
  waiting: 0,
  acquired: 0,
  contended: 0,
  handedOver: 0,
  refused: 0,
  lostExpired: 0,
  lostTaken: 0,
  waitMsSum: 0,
  waitMsMax: 0,
  holdMsSum: 0,
  holdMsMax: 0,
}

function totalsOf({ heldCount, waitingCount, metrics }: LockReport): LockTotals {
  return {
    held: heldCount,
    waiting: waitingCount,
    acquired: metrics.acquired,
    contended: metrics.contended,
    handedOver: metrics.handedOver,
    refused: metrics.refused,
    lostExpired: metrics.lost.expired,
    lostTaken: metrics.lost.taken,
    waitMsSum: metrics.wait.sumMs,
    waitMsMax: metrics.wait.maxMs,
    holdMsSum: metrics.hold.sumMs,
    holdMsMax: metrics.hold.maxMs,
  }
}

function addTotals(a: LockTotals, b: LockTotals): LockTotals {
  const sum = Object.fromEntries(
    Object.entries(a).map(([field, value]) => [field, value + b[field as keyof LockTotals]]),
  ) as unknown as LockTotals
  return {
    ...sum,
    waitMsMax: Math.max(a.waitMsMax, b.waitMsMax),
    holdMsMax: Math.max(a.holdMsMax, b.holdMsMax),
  }
}
