import { type KafkaAddress, kafkaReports, parseKafkaUrl, type Runtime, type TimerHandle } from '@firebreak/core'
import { KafkaSockets, kafkaClientOptions } from '@firebreak/core/node'
import type { Consumer, EachBatchPayload, Kafka, KafkaMessage } from 'kafkajs'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import type { HubLogger } from '../hub-options.ts'
import type { StreamedReports } from './streamed-reports.ts'

export interface KafkaIngestOptions {
  /** `kafka://[user:password@]host:port[,host:port…][/topic]`. */
  readonly url: string
  readonly runtime: Runtime
  readonly logger: HubLogger
  readonly alarms: AlarmBoard
  readonly reports: StreamedReports
}

const retryMs = 1000
const requestTimeoutMs = 3000
const leaveMs = 1000
const sessionTimeoutMs = 10_000
const partitions = 12
/** How far sensors' clocks may be behind ours if only they stamp messages. */
const clockToleranceMs = 60_000

/**
 * Reads reports from a Kafka topic. All hubs are one consumer group, and reports are keyed by instance, so a hub gets
 * all reports of an instance while it owns their partition, and recognises duplicates by their sequence.
 *
 * **Offsets are committed before a batch is counted**, contrary to the usual order: what a hub has counted is never
 * delivered to another hub when it dies, so no access counts twice. The price: a killed hub loses what it had committed
 * but not yet posted to the shared board, at most a tick, as with any other report. A hub that was cut off and lost its
 * partitions cannot commit, and does not count.
 *
 * Age: if the topic stamps messages itself (`message.timestamp.type=LogAppendTime`), reports that waited longer than
 * `maxReportAgeMs` are refused, by the broker's clock, which the hub learns from a message of its own. Otherwise the
 * stamp is the sender's, whose clock may be off by up to a minute before reports are lost.
 */
export class KafkaIngest {
  readonly kind = 'kafka'
  readonly #options: KafkaIngestOptions
  readonly #address: KafkaAddress
  #consumer: Consumer | undefined
  #sockets: KafkaSockets | undefined
  /** Our steady clock minus that of whatever stamps messages. */
  #clockOffsetMs = 0
  #retry: TimerHandle | undefined
  #running: Promise<void> | undefined
  #end: () => void = () => {}
  #isClosed = false

  constructor(options: KafkaIngestOptions) {
    this.#options = options
    this.#address = parseKafkaUrl(options.url, 'kafkaUrl')
  }

  get address(): string {
    return `${this.#address.brokers.join(',')}/${this.#address.topic}`
  }

  start(): void {
    this.#running = this.#run()
  }

  /** Ends for good: resolves once no connection is left, including those of an attempt to connect that was under way. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#retry?.cancel()
    this.#end()
    // A broker that is busy or frozen is not waited for.
    const ending = this.#options.runtime.timers.setTimeout(() => this.#sockets?.end(), leaveMs)
    await this.#running
    ending.cancel()
  }

  async #run(): Promise<void> {
    const { alarms, logger } = this.#options
    try {
      const kafka = await this.#client()
      if (this.#isClosed) return
      await this.#prepareTopic(kafka)
      if (this.#isClosed) return
      const consumer = kafka.consumer({
        groupId: kafkaReports.group,
        sessionTimeout: sessionTimeoutMs,
        heartbeatInterval: 1000,
        maxWaitTimeInMs: 100,
        // We restart it ourselves: a consumer restarted by kafkajs would be a second one that nobody ends.
        retry: { retries: 0, restartOnFailure: async () => false },
      })
      this.#consumer = consumer
      const ended = new Promise<Error>((resolve) => {
        this.#end = () => resolve(new Error('closed'))
        consumer.on(consumer.events.CRASH, ({ payload }) => resolve(payload.error))
      })
      await consumer.connect()
      // A consumer connected after `close` would join the group and take reports that nobody counts.
      if (this.#isClosed) return
      // A new group starts with what is there; old reports are refused by their age.
      await consumer.subscribe({ topic: this.#address.topic, fromBeginning: true })
      if (this.#isClosed) return
      const joined = new Promise<void>((resolve) => consumer.on(consumer.events.GROUP_JOIN, () => resolve()))
      await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch: (batch) => this.#take(batch) })
      await Promise.race([joined, ended.then((error) => Promise.reject(error))])
      alarms.clear('kafka')
      logger.info({ brokers: this.#address.brokers, topic: this.#address.topic }, 'also reading reports from Kafka')
      throw await ended
    } catch (error) {
      this.#raise(error as Error)
    } finally {
      await this.#leave()
    }
    if (this.#isClosed) return
    this.#retry = this.#options.runtime.timers.setTimeout(() => this.start(), retryMs)
  }

  async #client(): Promise<Kafka> {
    const { Kafka, logLevel } = await import('kafkajs').then((module) => module.default ?? module)
    this.#sockets = new KafkaSockets()
    return new Kafka({
      ...kafkaClientOptions(this.#address, this.#sockets, requestTimeoutMs),
      clientId: 'firebreak-hub',
      retry: { retries: 1 },
      logLevel: logLevel.NOTHING,
    })
  }

  /** Creates the topic if it is missing and we may, and learns the broker's clock. */
  async #prepareTopic(kafka: Kafka): Promise<void> {
    const { topic } = this.#address
    const admin = kafka.admin()
    const producer = kafka.producer({ allowAutoTopicCreation: true })
    try {
      await admin.connect()
      const configEntries = [
        { name: 'message.timestamp.type', value: 'LogAppendTime' },
        { name: 'retention.ms', value: '600000' },
      ]
      // The brokers' operator may have created it differently, or may not allow us to.
      await admin.createTopics({ topics: [{ topic, numPartitions: partitions, configEntries }] }).catch(() => {})
      await producer.connect()
      const { clock, wallClock } = this.#options.runtime
      const askedAt = clock.now()
      // A message without a value is not a report; hubs skip it.
      const [answer] = await producer.send({ topic, acks: -1, messages: [{ key: 'clock', value: null }] })
      const stampedAt = Number(answer?.logAppendTime ?? -1)
      const ourClocks = clock.now() - wallClock.now()
      this.#clockOffsetMs = stampedAt < 0 ? ourClocks + clockToleranceMs : (askedAt + clock.now()) / 2 - stampedAt
    } finally {
      await Promise.all([admin.disconnect(), producer.disconnect()].map((ending) => ending.catch(() => {})))
    }
  }

  async #take({ batch, resolveOffset, heartbeat, isRunning, isStale }: EachBatchPayload): Promise<void> {
    const { topic, partition, messages } = batch
    const last = messages.at(-1)
    if (last === undefined || !isRunning() || isStale()) return
    const offset = String(BigInt(last.offset) + 1n)
    await this.#consumer!.commitOffsets([{ topic, partition, offset }])
    for (const message of messages) this.#takeOne(message)
    resolveOffset(last.offset)
    await heartbeat()
  }

  #takeOne({ value, timestamp, headers }: KafkaMessage): void {
    if (value === null) return
    this.#options.reports.take({
      by: 'kafka',
      data: value,
      ageMs: this.#options.runtime.clock.now() - Number(timestamp) - this.#clockOffsetMs,
      header: (name) => headers?.[name]?.toString(),
    })
  }

  async #leave(): Promise<void> {
    await this.#consumer?.disconnect().catch(() => {})
    this.#consumer = undefined
    this.#sockets?.end()
  }

  #raise(error: Error): void {
    if (this.#isClosed) return
    const { brokers, topic } = this.#address
    const cause = `cannot read reports from Kafka at ${brokers.join(',')}, topic ${topic}: ${error.message}`
    const retry = 'retrying every second; sensors use WebSocket meanwhile'
    this.#options.alarms.raise({ id: 'kafka', severity: 'critical', cause, retry })
  }
}
