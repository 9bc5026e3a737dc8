import type { KafkaAddress } from '@firebreak/core'
import { KafkaSockets, kafkaClientOptions } from '@firebreak/core/node'
import type { Producer } from 'kafkajs'
import type { ReportStream, StreamedReport } from './report-stream.ts'

const confirmTimeoutMs = 2000

/**
 * Reports over Kafka, keyed by instance: one instance's reports are in one partition, in order, and so go to one hub at
 * a time, which knows their sequences.
 */
export class KafkaStream implements ReportStream {
  readonly name = 'Kafka'
  readonly troubleId = 'kafka'
  readonly #address: KafkaAddress
  readonly #clientId: string
  readonly #sockets = new KafkaSockets()
  #producer: Producer | undefined
  #end: () => void = () => {}
  #isClosed = false

  constructor(address: KafkaAddress, instanceId: string) {
    this.#address = address
    this.#clientId = `firebreak-${instanceId}`
  }

  async open(onUp: (isUp: boolean) => void): Promise<void> {
    const { Kafka, Partitioners, logLevel } = await import('kafkajs').then((module) => module.default ?? module)
    const kafka = new Kafka({
      ...kafkaClientOptions(this.#address, this.#sockets, confirmTimeoutMs),
      clientId: this.#clientId,
      retry: { retries: 0 },
      logLevel: logLevel.NOTHING,
    })
    const producer = kafka.producer({
      createPartitioner: Partitioners.DefaultPartitioner,
      allowAutoTopicCreation: true,
    })
    const ended = new Promise<void>((resolve) => {
      this.#end = resolve
      producer.on(producer.events.DISCONNECT, () => resolve())
    })
    this.#producer = producer
    await producer.connect()
    if (this.#isClosed) return
    onUp(true)
    await ended
    onUp(false)
  }

  async publish({ frame, instanceId, headers }: StreamedReport): Promise<void> {
    const message = { key: instanceId, value: Buffer.from(frame), headers: { ...headers } }
    await this.#producer!.send({
      topic: this.#address.topic,
      acks: -1,
      timeout: confirmTimeoutMs,
      messages: [message],
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#end()
    await this.#producer?.disconnect()
    this.#sockets.end()
  }
}
