import {
  decodeFrame,
  decodeInvalidation,
  decodeJsonPayload,
  encodeBinaryReport,
  encodeFrame,
  encodeJsonFrame,
  entryFromJson,
  type HeartbeatPayload,
  type HelloPayload,
  type Invalidation,
  type JsonFrameType,
  type JsonPayloads,
  type RefusedPayload,
  type Report,
  StrategyTable,
  type TableDelta,
  type TableEntry,
  type WelcomePayload,
} from '@firebreak/core'
import { WebSocket } from 'ws'

/** A sensor for tests: uses the wire format, keeps its table by core's own rules, and records what it receives. */
export class TestSensor {
  readonly socket: WebSocket
  readonly table = new StrategyTable()
  readonly refused: RefusedPayload[] = []
  readonly heartbeats: HeartbeatPayload[] = []
  readonly deltas: TableDelta[] = []
  readonly invalidations: Invalidation[] = []
  readonly gaps: TableDelta[] = []
  welcome: WelcomePayload | undefined
  snapshots = 0
  closed: { readonly code: number; readonly reason: string } | undefined
  readonly hello: HelloPayload
  #sequence = 0

  constructor(url: string, hello: Partial<HelloPayload> = {}, headers: Record<string, string> = {}) {
    this.hello = {
      serviceId: 'shop',
      hostId: 'host-1',
      instanceId: `instance-${Math.random().toString(36).slice(2)}`,
      agent: 'test/1',
      redisClusterIds: ['main'],
      epoch: '',
      version: 0,
      sentAt: Date.now(),
      ...hello,
    }
    this.socket = new WebSocket(`${url.replace('http', 'ws')}/v1/sensor`, { headers })
    this.socket.on('message', (data: Buffer) => this.#receive(data))
    this.socket.on('close', (code, reason) => {
      this.closed = { code, reason: reason.toString() }
    })
    this.socket.on('error', () => {})
  }

  /** Connects, says hello, and waits for the first table. */
  static async connect(url: string, hello: Partial<HelloPayload> = {}): Promise<TestSensor> {
    const sensor = new TestSensor(url, hello)
    await new Promise<void>((resolve, reject) => {
      sensor.socket.once('open', () => resolve())
      sensor.socket.once('error', reject)
    })
    sensor.send('hello', sensor.hello)
    await new Promise<void>((resolve, reject) => {
      sensor.socket.once('close', (code, reason) => reject(new Error(`closed: ${code} ${reason}`)))
      const look = () => (sensor.snapshots > 0 ? resolve() : setTimeout(look, 2))
      look()
    })
    return sensor
  }

  send<Type extends JsonFrameType>(type: Type, payload: JsonPayloads[Type]): void {
    this.socket.send(encodeJsonFrame(type, 0, payload))
  }

  /** Reports counts of keys; the sequence rises by itself. */
  report(counts: Record<string, number>, changes: Partial<Report> = {}, sequence = ++this.#sequence): void {
    const now = Date.now()
    const entries = Object.entries(counts).map(([key, count]) => ({ key, count, writes: 0, bytes: 0 }))
    const { serviceId, hostId, instanceId } = this.hello
    const report = { collectTs: now, sendTs: now, serviceId, hostId, instanceId, ...changes }
    const sections = changes.sections ?? [{ redisClusterId: 'main', entries }]
    this.socket.send(encodeFrame('report', sequence, encodeBinaryReport({ ...report, sections })))
  }

  close(): void {
    this.socket.close()
  }

  #receive(data: Buffer): void {
    const frame = decodeFrame(data)
    switch (frame.type) {
      case 'welcome':
        this.welcome = decodeJsonPayload<'welcome'>(frame)
        break
      case 'snapshot': {
        const snapshot = decodeJsonPayload<'snapshot'>(frame)
        this.table.applySnapshot({ ...snapshot, entries: snapshot.entries.map((entry) => entryFromJson(entry)!) })
        this.snapshots++
        break
      }
      case 'delta':
        this.#applyDelta(decodeJsonPayload<'delta'>(frame))
        break
      case 'heartbeat':
        this.heartbeats.push(decodeJsonPayload<'heartbeat'>(frame))
        break
      case 'refused':
        this.refused.push(decodeJsonPayload<'refused'>(frame))
        break
      case 'invalidate':
        this.invalidations.push(decodeInvalidation(frame))
        break
      default:
        throw new Error(`a hub does not send ${frame.type}`)
    }
  }

  #applyDelta(delta: TableDelta): void {
    this.deltas.push(delta)
    const set = delta.set.map((entry) => entryFromJson(entry)!)
    const removed = delta.removed.map((name) => entryFromJson(name as TableEntry)!)
    if (this.table.applyDelta({ ...delta, set, removed }).kind === 'gap') this.gaps.push(delta)
  }
}
