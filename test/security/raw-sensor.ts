import type { HelloPayload, JsonFrameType, JsonPayloads, RefusedPayload } from '@firebreak/core'
import { decodeFrame, decodeJsonPayload, encodeBinaryReport, encodeFrame, encodeJsonFrame } from '@firebreak/core'
import { waitFor } from '@firebreak/testkit'
import { type ClientOptions, WebSocket } from 'ws'

/** A sensor that says what a test wants it to say, true or not. */
export class RawSensor {
  readonly refused: RefusedPayload[] = []
  readonly tables: unknown[] = []
  readonly hello: HelloPayload
  isWelcome = false
  closed: string | undefined
  readonly #socket: WebSocket
  #sequence = 0

  constructor(port: number, hello: Partial<HelloPayload> = {}, options: ClientOptions = {}, scheme = 'ws') {
    this.hello = {
      serviceId: 'shop',
      hostId: 'host-1',
      instanceId: `i-${process.pid}-${Math.random()}`,
      agent: 'raw/1',
      redisClusterIds: ['main'],
      epoch: '',
      version: 0,
      sentAt: Date.now(),
      ...hello,
    }
    this.#socket = new WebSocket(`${scheme}://127.0.0.1:${port}/v1/sensor`, options)
    this.#socket.on('open', () => this.send('hello', this.hello))
    this.#socket.on('message', (data: Buffer) => this.#receive(data))
    this.#socket.on('close', (code, reason) => (this.closed = `${code} ${reason}`))
    this.#socket.on('error', (error) => (this.closed = error.message))
  }

  /** Resolves once the hub has taken or refused it. */
  async answered(): Promise<this> {
    await waitFor(() => this.isWelcome || this.closed !== undefined, { what: () => 'an answer to hello' })
    return this
  }

  send<Type extends JsonFrameType>(type: Type, payload: JsonPayloads[Type]): void {
    this.#socket.send(encodeJsonFrame(type, 0, payload))
  }

  report(
    counts: Record<string, number>,
    changes: { redisClusterId?: string; serviceId?: string; hostId?: string } = {},
  ): void {
    this.#socket.send(reportFrame({ ...this.hello, ...changes }, counts, ++this.#sequence, changes.redisClusterId))
  }

  close(): void {
    this.#socket.close()
  }

  #receive(data: Buffer): void {
    const frame = decodeFrame(data)
    if (frame.type === 'welcome') this.isWelcome = true
    if (frame.type === 'refused') this.refused.push(decodeJsonPayload<'refused'>(frame))
    if (frame.type === 'delta') this.tables.push(decodeJsonPayload<'delta'>(frame))
  }
}

export function reportFrame(
  { serviceId, hostId, instanceId }: Pick<HelloPayload, 'serviceId' | 'hostId' | 'instanceId'>,
  counts: Record<string, number>,
  sequence: number,
  redisClusterId = 'main',
): Uint8Array {
  const now = Date.now()
  const entries = Object.entries(counts).map(([key, count]) => ({ key, count, writes: 0, bytes: 0 }))
  const sections = [{ redisClusterId, entries }]
  return encodeFrame(
    'report',
    sequence,
    encodeBinaryReport({ collectTs: now, sendTs: now, serviceId, hostId, instanceId, sections }),
  )
}
