import {
  type Clock,
  decodeFrame,
  encodeJsonFrame,
  type Frame,
  type HelloPayload,
  isKafkaUrl,
  type JsonFrameType,
  type JsonPayloads,
  parseKafkaUrl,
  type TimerHandle,
  type Timers,
} from '@firebreak/core'
import type { Trouble } from '../trouble/trouble.ts'
import { HttpReporter } from './http-reporter.ts'
import { type HubAddress, isNatsUrl, isStreamUrl, parseHubUrl, parseNatsUrl } from './hub-address.ts'
import type { HubChannel, HubTransport } from './hub-channel.ts'
import { KafkaStream } from './kafka-stream.ts'
import { NatsStream } from './nats-stream.ts'
import { encodeReportFrame, type PendingReport, type Reporter } from './pending-report.ts'
import type { RenewableToken } from './renewable-token.ts'
import { ReportQueue } from './report-queue.ts'
import type { ReportStream } from './report-stream.ts'
import { StreamReporter } from './stream-reporter.ts'

/** What a link is built from. */
export interface HubLinkOptions {
  /**
   * The hubs' URLs; the link keeps one connection to one of them. A `nats://…` or `kafka://…` among them is where
   * reports go.
   */
  readonly urls: readonly string[]
  readonly token: RenewableToken
  readonly transport: HubTransport
  readonly reporter: Reporter
  readonly maxQueuedReports: number
  readonly maxQueuedEntries: number
  readonly clock: Clock
  readonly wallClock: Clock
  readonly timers: Timers
  readonly random: () => number
  readonly trouble: Trouble
  /** The first frame of each connection. */
  readonly hello: () => HelloPayload
  readonly onFrame: (frame: Frame) => void
  readonly onDown: () => void
}

const firstRetryMs = 50
const lastRetryMs = 750
/**
 * A hub that was cut off from its store is avoided for this long, and twice as long each time it still is: a process
 * that stays with another hub that is cut off finds the first one again after at most the time it was cut off …
 */
const aloneMs = 3000
/** … up to this: if every hub is cut off, each move brings the table of a hub with a different view. */
const maxAloneMs = 600_000
const maxBufferedBytes = 4 << 20

/**
 * A process' one connection to one of its hubs. It reconnects by itself, to the next hub each time, after a random wait
 * that grows to 0.75 s; meanwhile reports wait in a bounded queue, or go out over HTTP as text if a hub's WebSocket
 * cannot be reached but its HTTP can. Nothing ever waits for this.
 */
export class HubLink {
  readonly queue: ReportQueue
  readonly #options: HubLinkOptions
  readonly #addresses: readonly HubAddress[]
  readonly #http: HttpReporter
  readonly #stream: StreamReporter | undefined
  #channel: HubChannel | undefined
  #isOpen = false
  #isClosed = false
  #hubIndex: number
  #failures = 0
  /** The hub has said why it ends this connection. */
  #isRefused = false
  #retry: TimerHandle | undefined
  #watchdog: TimerHandle | undefined
  #heardAt: number
  #silenceMs = 5000
  #reportSequence = 0
  /**
   * Hubs not known to be healthy: when each was last found cut off or tried, and how many times in a row (no channel:
   * only tried so far).
   */
  readonly #alone = new Map<number, { at: number; times: number; channel: HubChannel | undefined }>()

  constructor(options: HubLinkOptions) {
    this.#options = options
    this.#addresses = options.urls.filter((url) => !isStreamUrl(url)).map(parseHubUrl)
    this.#hubIndex = Math.floor(options.random() * Math.max(1, this.#addresses.length))
    this.queue = new ReportQueue(options.maxQueuedReports, options.maxQueuedEntries)
    this.#http = new HttpReporter(options.reporter, options.token, options.wallClock, options.timers)
    this.#heardAt = options.clock.now()
    const stream = streamOf(options)
    this.#stream = stream === undefined ? undefined : new StreamReporter({ ...options, stream })
  }

  /** True while a hub is connected. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /** When a hub was last heard, by our clock; initially when the link was created. */
  get heardAt(): number {
    return this.#heardAt
  }

  start(): void {
    this.#stream?.start(() => this.flush())
    if (this.#addresses.length === 0) return
    this.#connect()
    this.#watchdog = this.#options.timers.setInterval(() => this.#watch(), 500)
  }

  /** The hub announced its heartbeat interval: after three missed heartbeats the connection counts as lost. */
  expectHeartbeat(everyMs: number): void {
    this.#silenceMs = Math.max(1000, everyMs * 3)
  }

  /**
   * The hub is cut off from the shared store: moves to one that is not known to be. If all are, the link stays where it
   * is and tries them again after a while.
   */
  preferAnother(): void {
    const now = this.#options.clock.now()
    const count = this.#addresses.length
    const before = this.#alone.get(this.#hubIndex % count)
    const isCounted = before !== undefined && (before.channel === undefined || before.channel === this.#channel)
    const times = (before?.times ?? 0) + (isCounted ? 0 : 1)
    this.#alone.set(this.#hubIndex % count, { at: now, times, channel: this.#channel })
    const isWorth = (index: number) => {
      const found = this.#alone.get(index)
      return found === undefined || now - found.at > Math.min(maxAloneMs, aloneMs * 2 ** (found.times - 1))
    }
    const steps = Array.from({ length: count - 1 }, (_, step) => step + 1)
    const step = steps.find((ahead) => isWorth((this.#hubIndex + ahead) % count))
    if (step === undefined) return
    // Counted when it is tried, because a hub that is down never reports being cut off; `isWell` resets it.
    const next = (this.#hubIndex + step) % count
    this.#alone.set(next, { at: now, times: (this.#alone.get(next)?.times ?? 0) + 1, channel: undefined })
    // `#ended` moves on to the next by itself.
    this.#hubIndex += step - 1
    this.#channel?.terminate()
  }

  /** The hub can reach its store. */
  isWell(): void {
    this.#alone.delete(this.#hubIndex % this.#addresses.length)
  }

  /** Queues a report and sends what can be sent. */
  report(report: PendingReport): void {
    if (this.#addresses.length === 0 && this.#stream === undefined) return
    this.queue.push(report)
    this.flush()
  }

  /** Sends queued reports as far as the connection takes them. */
  flush(): void {
    // While the stream is down, reports go over the hub connection.
    if (this.#stream?.isOpen) {
      this.#stream.send(this.queue, () => ++this.#reportSequence)
      return
    }
    if (!this.#isOpen) {
      if (this.#failures < 2 || this.#addresses.length === 0 || !this.#options.transport.hasHttp) return
      this.#http.send(this.queue, this.#currentAddress()).catch((error) => this.#options.trouble.failed(error))
      return
    }
    while (this.queue.length > 0 && this.#channel!.bufferedBytes < maxBufferedBytes) {
      const { reporter, wallClock } = this.#options
      const report = this.queue.shift()!
      this.#write(encodeReportFrame(report, reporter, ++this.#reportSequence, wallClock.now()))
    }
  }

  /** Sends a frame now; returns false, sending nothing, if there is no hub or it accepts none. */
  send<Type extends JsonFrameType>(type: Type, payload: JsonPayloads[Type]): boolean {
    if (!this.#isOpen || this.#channel!.bufferedBytes >= maxBufferedBytes) return false
    this.#write(encodeJsonFrame(type, 0, payload))
    return true
  }

  close(): void {
    this.#isClosed = true
    this.#stream?.close()
    this.#retry?.cancel()
    this.#watchdog?.cancel()
    this.#isOpen = false
    this.#channel?.close()
    this.#channel = undefined
  }

  /** The hub that the link is with, or tries next. */
  get hubUrl(): string {
    return this.#currentAddress().url
  }

  #write(bytes: Uint8Array): void {
    this.#channel!.send(bytes)
  }

  #currentAddress(): HubAddress {
    return this.#addresses[this.#hubIndex % this.#addresses.length]!
  }

  /** The hub that was tried last first, then the others. */
  #tried(): string {
    const last = this.#hubIndex % this.#addresses.length
    const inOrder = [...this.#addresses.slice(last), ...this.#addresses.slice(0, last)]
    return inOrder.map(({ url }) => url).join(', ')
  }

  #connect(): void {
    const { trouble, transport, token } = this.#options
    let channel: HubChannel
    try {
      token.renew()
      channel = transport.open(this.#currentAddress(), token.current, {
        onOpen: trouble.guarded(() => {
          if (this.#channel !== channel) return
          this.#isOpen = true
          this.#heardAt = this.#options.clock.now()
          this.#write(encodeJsonFrame('hello', 0, this.#options.hello()))
          this.flush()
        }),
        onMessage: (bytes, isBinary) => this.#received(channel, bytes, isBinary),
        onClose: trouble.guarded((failure) => this.#ended(channel, failure)),
      })
    } catch (error) {
      this.#ended(undefined, error)
      return
    }
    this.#channel = channel
  }

  #received(channel: HubChannel, bytes: Uint8Array, isBinary: boolean): void {
    if (this.#channel !== channel || !isBinary) return
    this.#heardAt = this.#options.clock.now()
    try {
      const frame = decodeFrame(bytes)
      // Only a hub that accepts us counts as reached: one that refuses us is not tried again at once.
      if (frame.type === 'welcome') {
        this.#failures = 0
        for (const kind of ['hub-unreachable', 'hub-refused']) this.#options.trouble.clear(kind)
      }
      this.#isRefused = frame.type === 'refused'
      this.#options.onFrame(frame)
    } catch (error) {
      this.#options.trouble.note('hub-frame', `cannot read a frame from the hub: ${messageOf(error)}`, error)
    }
  }

  #ended(channel: HubChannel | undefined, failure: unknown): void {
    if (this.#isClosed || (channel !== undefined && this.#channel !== channel)) return
    const wasOpen = this.#isOpen
    this.#channel = undefined
    this.#isOpen = false
    this.#failures++
    // One that refuses this process was reached, and has said so itself.
    if (this.#failures >= 2 && !this.#isRefused)
      this.#options.trouble.note(
        'hub-unreachable',
        `no hub can be reached at ${this.#tried()} (${messageOf(failure)}); Redis calls continue, and hot keys are handled by the last table`,
        failure,
      )
    this.#isRefused = false
    this.#hubIndex++
    if (wasOpen) this.#options.onDown()
    const ceiling = Math.min(lastRetryMs, firstRetryMs * 2 ** Math.min(10, this.#failures - 1))
    const waitMs = ceiling * (0.5 + this.#options.random() / 2)
    this.#retry = this.#options.timers.setTimeout(() => this.#connect(), waitMs)
  }

  #watch(): void {
    if (!this.#isOpen || this.#options.clock.now() - this.#heardAt <= this.#silenceMs) return
    // A frozen hub closes nothing: `terminate` ends our side at once and `close` follows.
    this.#channel?.terminate()
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : 'the connection was closed'
}

/** The stream for reports among the URLs, if there is one. */
function streamOf({ urls, reporter }: HubLinkOptions): ReportStream | undefined {
  const kafka = urls.find(isKafkaUrl)
  if (kafka !== undefined) return new KafkaStream(parseKafkaUrl(kafka, 'hubs'), reporter.instanceId)
  const nats = urls.filter(isNatsUrl).map(parseNatsUrl)
  return nats.length === 0 ? undefined : new NatsStream(nats)
}
