import type { AdmittedReport } from '../collect/report-intake.ts'
import type { ThreadAnswer } from './thread-messages.ts'

/** Reports sent to the threads together: with one message each, small ones would cost more to send than to count. */
export const blockBytes = 256 * 1024

let scratch = new Uint8Array(1024)

/** Reports in one shared block, and the threads' results. */
export class ReportBatch {
  readonly number: number
  readonly block: SharedArrayBuffer
  readonly reports: AdmittedReport[] = []
  readonly answers: (ThreadAnswer | undefined)[] = []
  readonly #bytes: Uint8Array
  readonly #ranges: number[] = []
  #length = 0
  /** Threads that have not answered; undefined before they were asked. */
  waitingFor: Set<number> | undefined

  constructor(number: number, block: SharedArrayBuffer) {
    this.number = number
    this.block = block
    this.#bytes = new Uint8Array(block)
  }

  get byteLength(): number {
    return this.#length
  }

  hasRoomFor(length: number): boolean {
    return this.#length + length <= this.#bytes.length
  }

  add(report: AdmittedReport, bytes: Uint8Array): void {
    this.#bytes.set(bytes, this.#length)
    this.#ranges.push(this.#length, this.#length + bytes.length, report.now)
    this.#length += bytes.length
    this.reports.push(report)
  }

  /** For each report, its start, its end, and its time. */
  ranges(): Float64Array {
    return Float64Array.from(this.#ranges)
  }

  /** A copy of a part of a report's bytes, in a reused buffer. */
  view(report: number, start: number, end: number): Uint8Array {
    const from = this.#ranges[report * 3]!
    const length = end - start
    if (length > scratch.length) scratch = new Uint8Array(length)
    const view = scratch.subarray(0, length)
    view.set(this.#bytes.subarray(from + start, from + end))
    return view
  }
}
