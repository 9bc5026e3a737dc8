import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { ChaosFault } from './faults.ts'

/** After a fault clients may still be busy connecting. */
const recoveryMs = 4000
/** How far back this process' own slowness is looked at. */
const slownessMs = 10_000

interface Window {
  readonly fault: ChaosFault
  readonly from: number
  to: number
}

/** When which fault lasted, and how late this process itself was: what an oracle excuses, and what it does not. */
export class FaultWindows {
  readonly #windows: Window[] = []
  readonly #delays: { readonly at: number; readonly ms: number }[] = []
  readonly #delay = monitorEventLoopDelay({ resolution: 5 })
  readonly #timer: NodeJS.Timeout

  constructor() {
    this.#delay.enable()
    this.#timer = setInterval(() => {
      const at = performance.now()
      this.#delays.push({ at, ms: this.#delay.max / 1e6 })
      this.#delay.reset()
      while (this.#delays[0] !== undefined && at - this.#delays[0].at > slownessMs) this.#delays.shift()
    }, 500)
  }

  begin(fault: ChaosFault): () => void {
    const window: Window = { fault, from: performance.now(), to: Number.POSITIVE_INFINITY }
    this.#windows.push(window)
    return () => {
      window.to = performance.now()
    }
  }

  /** True where a call of this way between the two times might have failed or waited for a bare client too. */
  excusesCall(reach: 'sdk' | 'proxy', from: number, to: number): boolean {
    return this.#overlapping(from, to, recoveryMs).some(({ fault }) => fault.reach === 'both' || fault.reach === reach)
  }

  /** True where values may have lived without a guard. */
  isTrackingRefused(from: number, to: number): boolean {
    return this.#overlapping(from, to, recoveryMs).some(({ fault }) => fault.refusesTracking === true)
  }

  /** How late timers of this process were of late. */
  get slowMs(): number {
    return Math.max(this.#delay.max / 1e6, 0, ...this.#delays.map(({ ms }) => ms))
  }

  /** The faults that lasted at a time or shortly before, for the account of a failure. */
  around(at: number): string[] {
    return this.#overlapping(at - 2000, at, recoveryMs).map(({ fault }) => fault.name)
  }

  close(): void {
    clearInterval(this.#timer)
    this.#delay.disable()
  }

  #overlapping(from: number, to: number, afterMs: number): Window[] {
    return this.#windows.filter((window) => window.from <= to && window.to + afterMs >= from)
  }
}
