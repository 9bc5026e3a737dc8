import { natsReports } from '@firebreak/core'
import type { JetStreamClient } from '@nats-io/jetstream'
import type { MsgHdrs, NatsConnection } from '@nats-io/transport-node'
import type { NatsAddress } from './hub-address.ts'
import type { ReportStream, StreamedReport } from './report-stream.ts'

const confirmTimeoutMs = 2000

/** Reports over NATS JetStream, which itself drops a duplicate with the same id. */
export class NatsStream implements ReportStream {
  readonly name = 'NATS'
  readonly troubleId = 'nats'
  readonly #servers: readonly NatsAddress[]
  #connection: NatsConnection | undefined
  #stream: JetStreamClient | undefined
  #newHeaders: () => MsgHdrs = () => expectOpen()
  #isClosed = false

  constructor(servers: readonly NatsAddress[]) {
    this.#servers = servers
  }

  async open(onUp: (isUp: boolean) => void): Promise<void> {
    const [{ connect, headers }, { jetstream }] = await Promise.all([
      import('@nats-io/transport-node'),
      import('@nats-io/jetstream'),
    ])
    const [{ server: _, ...secret }] = this.#servers as [NatsAddress]
    const connection = await connect({
      servers: this.#servers.map(({ server }) => server),
      ...secret,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 250,
      timeout: 2000,
    })
    if (this.#isClosed) return connection.close()
    this.#connection = connection
    this.#stream = jetstream(connection)
    this.#newHeaders = headers
    onUp(true)
    for await (const { type } of connection.status()) {
      if (type === 'disconnect') onUp(false)
      if (type === 'reconnect') onUp(true)
    }
  }

  async publish({ frame, id, headers }: StreamedReport): Promise<void> {
    const entries = Object.entries(headers)
    const options = { msgID: id, timeout: confirmTimeoutMs }
    if (entries.length === 0) {
      await this.#stream!.publish(natsReports.subject, frame, options)
      return
    }
    const signed = this.#newHeaders()
    for (const [name, value] of entries) signed.set(name, value)
    await this.#stream!.publish(natsReports.subject, frame, { ...options, headers: signed })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#connection?.close()
  }
}

function expectOpen(): never {
  throw new Error('the stream is not open')
}
