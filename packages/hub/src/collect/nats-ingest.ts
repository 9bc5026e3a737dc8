import { natsReports, type Runtime, type TimerHandle } from '@firebreak/core'
import type { Consumer, ConsumerMessages, JsMsg } from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import { HubConfigError } from '../errors.ts'
import type { HubLogger } from '../hub-options.ts'
import type { StreamedReports } from './streamed-reports.ts'

export interface NatsIngestOptions {
  /** `nats://[user:password@]host:port`. */
  readonly url: string
  readonly runtime: Runtime
  readonly logger: HubLogger
  readonly alarms: AlarmBoard
  readonly reports: StreamedReports
  readonly maxReportAgeMs: number
}

interface NatsAddress {
  readonly servers: string
  readonly user?: string
  readonly pass?: string
  readonly token?: string
  readonly tls?: object
}

const retryMs = 1000
const closeMs = 1000
const nanosPerMs = 1e6
/** Reports that no hub has taken by then are useless. */
const maxAgeMs = 60_000
const maxStreamBytes = 256 * 1024 * 1024
/** Reports fetched ahead. */
const maxFetched = 500

/**
 * Reads reports from a NATS JetStream, at least once.
 *
 * All hubs share one durable consumer, so each report goes to one of them and is confirmed once it is counted. A report
 * whose confirmation was lost is redelivered after `ackWaitMs`. The same hub recognises its sequence. Another hub (the
 * first died) refuses it as expired by the time at which the stream received it, since `ackWaitMs` is longer than
 * `maxReportAgeMs`; its counts are already on the shared board, or would be too late.
 */
export class NatsIngest {
  readonly kind = 'nats'
  readonly #options: NatsIngestOptions
  readonly #address: NatsAddress
  /** Our time minus the server's. */
  #clockOffsetMs = 0
  #connection: NatsConnection | undefined
  #messages: ConsumerMessages | undefined
  #isUp = false
  #retry: TimerHandle | undefined
  #isClosed = false

  constructor(options: NatsIngestOptions) {
    this.#options = options
    this.#address = parseAddress(options.url)
  }

  get address(): string {
    return this.#address.servers
  }

  start(): void {
    void this.#run()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#retry?.cancel()
    this.#messages?.stop()
    await this.#leave()
  }

  /**
   * Only the first caller closes the connection: a call that waits on a connection closed by another never gets an
   * answer.
   */
  async #leave(): Promise<void> {
    const connection = this.#connection
    this.#connection = undefined
    // Pending confirmations; an unreachable server has no use for them.
    if (this.#isUp) await this.#within(connection?.flush())
    await this.#within(connection?.close())
  }

  /** Does not wait for a frozen server. */
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
      logger.info({ servers: this.#address.servers }, 'also reading reports from NATS')
      this.#messages = await consumer.consume({ max_messages: maxFetched })
      if (this.#isClosed) this.#messages.stop()
      for await (const message of this.#messages) this.#take(message)
    } catch (error) {
      this.#raise(error as Error)
    }
    // Checked after closing too: a connection that came up meanwhile would keep the process alive and take reports from
    // other hubs.
    await this.#leave()
    if (this.#isClosed) return
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
    if (this.#isClosed) throw new Error('closed while connecting')
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
    const storedAt = Math.floor(message.info.timestampNanos / nanosPerMs)
    this.#options.reports.take({
      by: 'nats',
      data: message.data,
      ageMs: this.#now() - storedAt - this.#clockOffsetMs,
      header: (name) => message.headers?.get(name),
    })
    message.ack()
  }

  #raise(error: Error): void {
    if (this.#isClosed) return
    const cause = `cannot read reports from NATS at ${this.#address.servers}: ${error.message}`
    const retry = 'retrying every second; sensors use WebSocket meanwhile'
    this.#options.alarms.raise({ id: 'nats', severity: 'critical', cause, retry })
  }
}

function parseAddress(text: string): NatsAddress {
  let url: URL
  try {
    url = new URL(text)
    if (url.protocol !== 'nats:' && url.protocol !== 'tls:') throw new TypeError('not nats:')
  } catch (cause) {
    throw new HubConfigError('natsUrl', 'natsUrl must be nats://[user:password@]host:port, or tls://… for TLS', {
      cause,
    })
  }
  const [user, pass] = [url.username, url.password].map(decodeURIComponent) as [string, string]
  const secret = pass === '' ? { token: user } : { user, pass }
  const servers = url.port === '' ? `${url.hostname}:4222` : url.host
  // The client ignores the scheme: without the option it would use plain text with a server that does not require TLS.
  return { servers, ...(user !== '' && secret), ...(url.protocol === 'tls:' && { tls: {} }) }
}
