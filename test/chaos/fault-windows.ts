import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { ChaosFault } from './faults.ts'

/** After a fault clients may still be busy connecting. */
const recoveryMs = 4000
/** How far back delays of this process are considered. */
const slownessMs = 10_000

interface Window {
  readonly fault: ChaosFault
  readonly from: number
  to: number
}

/** When each fault lasted, and how late this process itself was: what a check excuses, and what it does not. */
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

  /** True if such a call between the two times might also have failed or waited with a bare client. */
  excusesCall(reach: 'sdk' | 'proxy', from: number, to: number): boolean {
    return this.#overlapping(from, to, recoveryMs).some(({ fault }) => fault.reach === 'both' || fault.reach === reach)
  }

  /** True if values may have lived without a guard. */
  isTrackingRefused(from: number, to: number): boolean {
    return this.#overlapping(from, to, recoveryMs).some(({ fault }) => fault.refusesTracking === true)
  }

  /** How late timers of this process were recently. */
  get slowMs(): number {
    return Math.max(this.#delay.max / 1e6, 0, ...this.#delays.map(({ ms }) => ms))
  }

  /** The faults at a time or shortly before it, to report with a failure. */
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
