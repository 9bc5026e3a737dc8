import type { Clock, TimerHandle, Timers } from '@firebreak/core'
import { reportKeyId, reportKeyOf, signatureHeaders, signReport } from '@firebreak/core/node'
import type { Trouble } from '../trouble/trouble.ts'
import { encodeReportFrame, type Reporter } from './pending-report.ts'
import type { RenewableToken } from './renewable-token.ts'
import type { ReportQueue } from './report-queue.ts'
import type { ReportStream } from './report-stream.ts'

export interface StreamReporterOptions {
  readonly stream: ReportStream
  readonly reporter: Reporter
  readonly wallClock: Clock
  readonly timers: Timers
  readonly trouble: Trouble
  /** Signs the reports: the token itself is not sent over the stream. */
  readonly token: RenewableToken
}

/** Maximum number of reports not yet confirmed by the stream; others wait in the queue. */
const maxUnconfirmed = 32
/** A stream that has not confirmed by then may be frozen: reports go another way until it confirms one. */
const stallMs = 400
/** How many times one report is sent before it is dropped. */
const maxAttempts = 5
const retryMs = 1000

/**
 * Sends reports to a stream (NATS, Kafka), at least once: each frame is resent, with the same bytes and sequence, until
 * the stream confirms it. The hub recognises duplicates.
 */
export class StreamReporter {
  readonly #options: StreamReporterOptions
  readonly #sign: (frame: Uint8Array) => Record<string, string>
  #isUp = false
  #isStalled = false
  #isClosed = false
  #unconfirmed = 0
  #retry: TimerHandle | undefined
  #onReady: () => void = () => {}

  constructor(options: StreamReporterOptions) {
    this.#options = options
    this.#sign = signerOf(options.token, options.wallClock)
  }

  /** True while the stream is connected and confirms what it gets. */
  get isOpen(): boolean {
    return this.#isUp && !this.#isStalled
  }

  /** Connects, and again whenever the connection is lost; `onReady` is called when there is room for reports. */
  start(onReady: () => void): void {
    this.#onReady = onReady
    this.#connect().catch((error) => this.#options.trouble.failed(error))
  }

  /** Takes reports from the queue as long as there is room. */
  send(queue: ReportQueue, nextSequence: () => number): void {
    while (queue.length > 0 && this.#unconfirmed < maxUnconfirmed && this.isOpen) {
      const report = queue.shift()!
      const sequence = nextSequence()
      const { reporter, wallClock } = this.#options
      const frame = encodeReportFrame(report, reporter, sequence, wallClock.now())
      this.#unconfirmed++
      // Includes the time: a restarted process counts from the start.
      this.#publish(frame, `${reporter.instanceId}/${sequence}/${report.collectTs}`)
        .finally(
          this.#options.trouble.guarded(() => {
            this.#unconfirmed--
            // Nothing in flight can show that it confirms again: the next report will.
            if (this.#unconfirmed === 0) this.#isStalled = false
            if (queue.length > 0) this.#onReady()
          }),
        )
        .catch((error) => this.#options.trouble.failed(error))
    }
  }

  close(): void {
    this.#isClosed = true
    this.#retry?.cancel()
    void this.#options.stream.close().catch(() => {})
  }

  async #publish(frame: Uint8Array, id: string): Promise<void> {
    const { stream, reporter, timers, trouble } = this.#options
    // The last one in flight continues: it shows when the stream confirms again.
    const isProbe = () => this.#isStalled && this.#unconfirmed === 1
    for (let attempt = 1; (attempt <= maxAttempts || isProbe()) && !this.#isClosed; attempt++) {
      // A frozen server closes no connection, and its client notices only after seconds or minutes.
      const stalled = timers.setTimeout(() => {
        this.#isStalled = true
      }, stallMs)
      try {
        await stream.publish({ frame, id, instanceId: reporter.instanceId, headers: this.#sign(frame) })
        this.#isStalled = false
        stalled.cancel()
        trouble.clear(stream.troubleId)
        return
      } catch (error) {
        stalled.cancel()
        this.#isStalled = true
        if (this.#isClosed) return
        this.#note(error)
        await new Promise<void>((resolve) => timers.setTimeout(resolve, retryMs))
      }
    }
  }

  async #connect(): Promise<void> {
    const { stream, timers } = this.#options
    try {
      await stream.open((isUp) => {
        this.#isUp = isUp
        if (!isUp) return
        this.#isStalled = false
        this.#options.trouble.attempt(() => this.#onReady())
      })
    } catch (error) {
      this.#note(error)
    }
    this.#isUp = false
    if (!this.#isClosed) this.#retry = timers.setTimeout(() => this.start(this.#onReady), retryMs)
  }

  #note(error: unknown): void {
    const cause = error instanceof Error ? error.message : String(error)
    const { troubleId, name } = this.#options.stream
    this.#options.trouble.note(troubleId, `reports are not reaching ${name} (${cause}); retrying`, error)
  }
}

/** Makes the headers that prove who sent a report. */
function signerOf(appToken: RenewableToken, clock: Clock): (frame: Uint8Array) => Record<string, string> {
  let signedWith: string | undefined
  let key: ReturnType<typeof reportKeyOf> | undefined
  return (frame) => {
    const token = appToken.currentAt(clock.now())
    if (token === undefined) return {}
    if (key === undefined || token !== signedWith) key = reportKeyOf(token)
    signedWith = token
    return { [signatureHeaders.key]: reportKeyId(key), [signatureHeaders.signature]: signReport(key, frame) }
  }
}
