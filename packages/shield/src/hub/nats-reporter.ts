import { type Clock, natsReports, type TimerHandle, type Timers } from '@firebreak/core'
import { reportKeyId, reportKeyOf, signatureHeaders, signReport } from '@firebreak/core/node'
import type { JetStreamClient } from '@nats-io/jetstream'
import type { MsgHdrs, NatsConnection } from '@nats-io/transport-node'
import type { Trouble } from '../trouble/trouble.ts'
import type { NatsAddress } from './hub-address.ts'
import { encodeReportFrame, type Reporter } from './pending-report.ts'
import type { ReportQueue } from './report-queue.ts'

export interface NatsReporterOptions {
  readonly servers: readonly NatsAddress[]
  readonly reporter: Reporter
  readonly wallClock: Clock
  readonly timers: Timers
  readonly trouble: Trouble
  /** Signs the reports: the token itself does not go over NATS. */
  readonly token: string | undefined
}

/** Reports that the stream has not yet confirmed; more wait in the queue. */
const maxUnconfirmed = 32
const confirmTimeoutMs = 2000
/** A stream that has not confirmed by then may be frozen: reports go another way until it confirms one. */
const stallMs = 400
/** How often one report is sent before it is let go. */
const maxAttempts = 5
const retryMs = 1000

/**
 * Sends reports to a NATS JetStream, at least once: each frame is sent again, the same bytes under the same sequence, until
 * the stream confirms it. The stream and the hub recognise one that came twice.
 */
export class NatsReporter {
  readonly #options: NatsReporterOptions
  #connection: NatsConnection | undefined
  #stream: JetStreamClient | undefined
  #signed: ((frame: Uint8Array) => MsgHdrs) | undefined
  #isUp = false
  #isStalled = false
  #isClosed = false
  #unconfirmed = 0
  #retry: TimerHandle | undefined
  #onReady: () => void = () => {}

  constructor(options: NatsReporterOptions) {
    this.#options = options
  }

  /** True while the server is connected and confirms what it gets. */
  get isOpen(): boolean {
    return this.#isUp && !this.#isStalled && this.#stream !== undefined
  }

  /** Connects, and again whenever the connection is lost; `onReady` is called when there is room for reports. */
  start(onReady: () => void): void {
    this.#onReady = onReady
    void this.#connect()
  }

  /** Takes reports from the queue as long as there is room. */
  send(queue: ReportQueue, nextSequence: () => number): void {
    while (queue.length > 0 && this.#unconfirmed < maxUnconfirmed && this.isOpen) {
      const report = queue.shift()!
      const sequence = nextSequence()
      const { reporter, wallClock } = this.#options
      const frame = encodeReportFrame(report, reporter, sequence, wallClock.now())
      this.#unconfirmed++
      // The time too: a process that starts over counts from the start.
      void this.#publish(frame, `${reporter.instanceId}/${sequence}/${report.collectTs}`).finally(
        this.#options.trouble.guarded(() => {
          this.#unconfirmed--
          // Nobody is left to see that it confirms again: the next report does.
          if (this.#unconfirmed === 0) this.#isStalled = false
          if (queue.length > 0) this.#onReady()
        }),
      )
    }
  }

  close(): void {
    this.#isClosed = true
    this.#retry?.cancel()
    void this.#connection?.close().catch(() => {})
  }

  async #publish(frame: Uint8Array, msgID: string): Promise<void> {
    // The last one that is under way goes on: it tells when the stream confirms again.
    const isProbe = () => this.#isStalled && this.#unconfirmed === 1
    for (let attempt = 1; (attempt <= maxAttempts || isProbe()) && !this.#isClosed; attempt++) {
      // A frozen server ends no connection, and the client itself notices only after minutes.
      const stalled = this.#options.timers.setTimeout(() => {
        this.#isStalled = true
      }, stallMs)
      try {
        const headers = this.#signed?.(frame)
        const options = { msgID, timeout: confirmTimeoutMs, ...(headers !== undefined && { headers }) }
        await this.#stream!.publish(natsReports.subject, frame, options)
        this.#isStalled = false
        stalled.cancel()
        this.#options.trouble.clear('nats')
        return
      } catch (error) {
        stalled.cancel()
        this.#isStalled = true
        if (this.#isClosed) return
        this.#note(error)
        await new Promise<void>((resolve) => this.#options.timers.setTimeout(resolve, retryMs))
      }
    }
  }

  async #connect(): Promise<void> {
    const { servers, timers } = this.#options
    try {
      const [{ connect, headers }, { jetstream }] = await Promise.all([
        import('@nats-io/transport-node'),
        import('@nats-io/jetstream'),
      ])
      const [{ server: _, ...secret }] = servers as [NatsAddress]
      const connection = await connect({
        servers: servers.map(({ server }) => server),
        ...secret,
        maxReconnectAttempts: -1,
        reconnectTimeWait: 250,
        timeout: 2000,
      })
      if (this.#isClosed) {
        await connection.close()
        return
      }
      this.#connection = connection
      this.#stream = jetstream(connection)
      this.#signed = signerOf(this.#options.token, headers)
      this.#isUp = true
      this.#onReady()
      for await (const { type } of connection.status()) {
        if (type === 'disconnect') this.#isUp = false
        if (type !== 'reconnect') continue
        this.#isUp = true
        this.#isStalled = false
        this.#onReady()
      }
    } catch (error) {
      this.#note(error)
    }
    this.#isUp = false
    if (!this.#isClosed) this.#retry = timers.setTimeout(() => void this.#connect(), retryMs)
  }

  #note(error: unknown): void {
    const cause = error instanceof Error ? error.message : String(error)
    this.#options.trouble.note('nats', `reports do not reach NATS (${cause}); they are sent again`, error)
  }
}

/** Makes the headers that prove whose a report is. */
function signerOf(token: string | undefined, newHeaders: () => MsgHdrs) {
  if (token === undefined) return undefined
  const key = reportKeyOf(token)
  const id = reportKeyId(key)
  return (frame: Uint8Array): MsgHdrs => {
    const headers = newHeaders()
    headers.set(signatureHeaders.key, id)
    headers.set(signatureHeaders.signature, signReport(key, frame))
    return headers
  }
}
