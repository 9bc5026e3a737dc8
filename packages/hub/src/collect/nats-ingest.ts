import {
  decodeFrame,
  FrameError,
  natsReports,
  ReportRefusedError,
  type Runtime,
  type TimerHandle,
} from '@firebreak/core'
import { isSignature, signatureHeaders } from '@firebreak/core/node'
import type { Consumer, ConsumerMessages, JsMsg } from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import { type AppGrant, anyApp, ScopeError } from '../access/credential.ts'
import type { CredentialBook } from '../access/credential-book.ts'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import { ApiProblem, HubConfigError } from '../errors.ts'
import type { HubLogger } from '../hub-options.ts'
import type { Collector } from './collector.ts'

export interface NatsIngestOptions {
  /** `nats://[user:password@]host:port`. */
  readonly url: string
  readonly runtime: Runtime
  readonly logger: HubLogger
  readonly alarms: AlarmBoard
  readonly collector: Collector
  readonly maxReportAgeMs: number
  readonly book: CredentialBook
}

interface NatsAddress {
  readonly servers: string
  readonly user?: string
  readonly pass?: string
  readonly token?: string
}

const retryMs = 1000
const closeMs = 1000
const nanosPerMs = 1e6
/** What hubs have not taken by then is of no use to them. */
const maxAgeMs = 60_000
const maxStreamBytes = 256 * 1024 * 1024
/** Reports fetched ahead. */
const maxFetched = 500

/**
 * Takes reports from a NATS JetStream, at least once.
 *
 * All hubs share one durable consumer, so each report goes to one of them, and is confirmed once it is counted. A report
 * whose confirmation was lost comes again after `ackWaitMs`. To the same hub: its sequence is known. To another one, because
 * the first died: `ackWaitMs` is longer than `maxReportAgeMs`, so that it is refused as expired, by the time at which the
 * stream took it in; its counts are on the board of the hubs already, or would be too late.
 */
export class NatsIngest {
  readonly #options: NatsIngestOptions
  readonly #address: NatsAddress
  /** Our time minus the server's. */
  #clockOffsetMs = 0
  #connection: NatsConnection | undefined
  #messages: ConsumerMessages | undefined
  #isUp = false
  #retry: TimerHandle | undefined
  #isClosed = false
  #reportCount = 0

  constructor(options: NatsIngestOptions) {
    this.#options = options
    this.#address = parseAddress(options.url)
  }

  /** Reports that came this way since start, those that were refused included. */
  get reportCount(): number {
    return this.#reportCount
  }

  start(): void {
    void this.#run()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#retry?.cancel()
    this.#messages?.stop()
    // Confirmations that are on their way; a server that is away has no use for them.
    if (this.#isUp) await this.#within(this.#connection?.flush())
    await this.#within(this.#connection?.close())
  }

  /** A frozen server is not waited for. */
  async #within(work: Promise<void> | undefined): Promise<void> {
    const { timers } = this.#options.runtime
    let timer: TimerHandle | undefined
    const late = new Promise<void>((resolve) => {
      timer = timers.setTimeout(resolve, closeMs)
    })
    await Promise.race([work?.catch(() => {}), late])
    timer?.cancel()
  }

  #now(): number {
    return this.#options.runtime.clock.now()
  }

  get #ackWaitMs(): number {
    return this.#options.maxReportAgeMs + 5000
  }

  async #run(): Promise<void> {
    const { alarms, logger, runtime } = this.#options
    try {
      const consumer = await this.#connect()
      alarms.clear('nats')
      logger.info({ servers: this.#address.servers }, 'reports come from NATS too')
      this.#messages = await consumer.consume({ max_messages: maxFetched })
      for await (const message of this.#messages) this.#take(message)
    } catch (error) {
      this.#raise(error as Error)
    }
    if (this.#isClosed) return
    await this.#connection?.close().catch(() => {})
    this.#connection = undefined
    this.#retry = runtime.timers.setTimeout(() => void this.#run(), retryMs)
  }

  async #connect(): Promise<Consumer> {
    const [{ connect }, jet] = await Promise.all([import('@nats-io/transport-node'), import('@nats-io/jetstream')])
    const connection = await connect({
      ...this.#address,
      timeout: 2000,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 250,
    })
    this.#connection = connection
    this.#isUp = true
    void this.#watch(connection)
    const manager = await jet.jetstreamManager(connection)
    const { stream, subject, clockSubject, consumer } = natsReports
    await manager.streams.add({
      name: stream,
      subjects: [subject, clockSubject],
      retention: jet.RetentionPolicy.Workqueue,
      discard: jet.DiscardPolicy.Old,
      max_age: maxAgeMs * nanosPerMs,
      max_bytes: maxStreamBytes,
      duplicate_window: maxAgeMs * nanosPerMs,
    })
    await manager.consumers.add(stream, {
      durable_name: consumer,
      filter_subject: subject,
      ack_policy: jet.AckPolicy.Explicit,
      ack_wait: this.#ackWaitMs * nanosPerMs,
      max_ack_pending: 20_000,
    })
    const client = jet.jetstream(connection)
    const askedAt = this.#now()
    const { seq } = await client.publish(clockSubject)
    const answeredAt = this.#now()
    const stored = await manager.streams.getMessage(stream, { seq })
    if (stored !== null) this.#clockOffsetMs = (askedAt + answeredAt) / 2 - stored.time.getTime()
    return client.consumers.get(stream, consumer)
  }

  async #watch(connection: NatsConnection): Promise<void> {
    for await (const { type } of connection.status()) {
      if (type === 'disconnect') {
        this.#isUp = false
        this.#raise(new Error('the connection was lost'))
      } else if (type === 'reconnect') {
        this.#isUp = true
        this.#options.alarms.clear('nats')
      }
    }
  }

  #take(message: JsMsg): void {
    const { collector, maxReportAgeMs } = this.#options
    this.#reportCount++
    const storedAt = Math.floor(message.info.timestampNanos / nanosPerMs)
    const ageMs = this.#now() - storedAt - this.#clockOffsetMs
    try {
      if (ageMs > maxReportAgeMs) {
        collector.countRefusal('expired')
      } else {
        const grant = this.#senderOf(message)
        const frame = decodeFrame(message.data)
        if (frame.type !== 'report') throw new FrameError(`a ${frame.type} frame is no report`)
        collector.collectBinary(frame.bytes, frame.payloadStart, frame.sequence, grant)
      }
    } catch (error) {
      // What is refused once would be refused again: it is confirmed all the same.
      if (error instanceof FrameError) collector.countRefusal('unparsable')
      else if (!(error instanceof ReportRefusedError || error instanceof ApiProblem)) throw error
    }
    message.ack()
  }

  /** Whose report this is: NATS's own users are not ours, so that each report is signed with its app token. */
  #senderOf({ data, headers }: JsMsg): AppGrant {
    const { book, collector } = this.#options
    if (!book.hasAny) return anyApp
    const signer = book.signer(headers?.get(signatureHeaders.key) ?? '')
    const signature = headers?.get(signatureHeaders.signature) ?? ''
    if (signer !== undefined && isSignature(signer.reportKey, data, signature)) return signer.grant
    collector.countRefusal('scope')
    throw new ScopeError('report refused: it is not signed with an app token')
  }

  #raise(error: Error): void {
    if (this.#isClosed) return
    const cause = `no reports come from NATS at ${this.#address.servers}: ${error.message}`
    const retry = 'it is tried again every second; sensors send over WebSocket meanwhile'
    this.#options.alarms.raise({ id: 'nats', severity: 'critical', cause, retry })
  }
}

function parseAddress(text: string): NatsAddress {
  let url: URL
  try {
    url = new URL(text)
    if (url.protocol !== 'nats:') throw new TypeError('not nats:')
  } catch (cause) {
    throw new HubConfigError('natsUrl', 'natsUrl must be nats://[user:password@]host:port', { cause })
  }
  const [user, pass] = [url.username, url.password].map(decodeURIComponent) as [string, string]
  const secret = pass === '' ? { token: user } : { user, pass }
  return { servers: url.port === '' ? `${url.hostname}:4222` : url.host, ...(user !== '' && secret) }
}
