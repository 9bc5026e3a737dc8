import {
  decodeFrame,
  decodeJsonPayload,
  encodeBinaryReport,
  encodeFrame,
  encodeJsonFrame,
  type HeartbeatPayload,
  StrategyTable,
  type TableDelta,
} from '@firebreak/core'
import { WebSocket } from 'ws'

/**
 * The last delta that came, for all sensors: a fleet in one process is told the same ten thousand times, and would measure
 * its own JSON parser instead of the hub.
 */
let lastDelta: { readonly bytes: Buffer; readonly delta: TableDelta } | undefined

function readDelta(data: Buffer): TableDelta {
  if (lastDelta?.bytes.equals(data)) return lastDelta.delta
  const delta = decodeJsonPayload<'delta'>(decodeFrame(data))
  lastDelta = { bytes: Buffer.from(data), delta }
  return delta
}

/** A sensor of few bytes: thousands of them fit into one test process. */
export class WireSensor {
  readonly table = new StrategyTable()
  readonly #socket: WebSocket
  readonly #ids: { serviceId: string; hostId: string; instanceId: string }
  readonly #clock: { now(): number }
  #sequence = 0
  #timer: NodeJS.Timeout | undefined
  intervalMs = 0
  heartbeat: HeartbeatPayload | undefined
  heartbeats = 0
  closeCode: number | undefined
  gaps = 0
  onTable: (() => void) | undefined

  constructor(url: string, number: number, serviceId = 'shop', clock: { now(): number } = Date) {
    this.#clock = clock
    this.#ids = { serviceId, hostId: `host-${number}`, instanceId: `instance-${number}` }
    this.#socket = new WebSocket(`${url.replace('http', 'ws')}/v1/sensor`, { perMessageDeflate: false })
    this.#socket.on('open', () => {
      const rest = { agent: 'simulated', redisClusterIds: ['main'], epoch: '', version: 0, sentAt: clock.now() }
      this.#socket.send(encodeJsonFrame('hello', 0, { ...this.#ids, ...rest }))
    })
    this.#socket.on('message', (data: Buffer) => this.#receive(data))
    this.#socket.on('error', () => {})
    this.#socket.on('close', (code) => {
      this.closeCode = code
      clearTimeout(this.#timer)
    })
  }

  /** True once the first table has come. */
  get isReady(): boolean {
    return this.table.epoch !== ''
  }

  report(counts: Record<string, number>): void {
    const now = this.#clock.now()
    const entries = Object.entries(counts).map(([key, count]) => ({ key, count, writes: 0, bytes: 0 }))
    const sections = [{ redisClusterId: 'main', entries }]
    const report = encodeBinaryReport({ collectTs: now, sendTs: now, ...this.#ids, sections })
    this.#socket.send(encodeFrame('report', ++this.#sequence, report))
  }

  /** Reports the same counts again and again, as often as the hub asks. */
  keepReporting(counts: () => Record<string, number>): void {
    const next = () => {
      this.report(counts())
      this.#timer = setTimeout(next, this.intervalMs)
    }
    this.#timer = setTimeout(next, Math.random() * this.intervalMs)
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#socket.close()
  }

  #receive(data: Buffer): void {
    const frame = decodeFrame(data)
    if (frame.type === 'welcome') this.intervalMs = decodeJsonPayload<'welcome'>(frame).intervalMs
    if (frame.type === 'heartbeat') {
      this.heartbeat = decodeJsonPayload<'heartbeat'>(frame)
      this.intervalMs = this.heartbeat.intervalMs
      this.heartbeats++
    }
    if (frame.type === 'snapshot') this.table.applySnapshot(decodeJsonPayload<'snapshot'>(frame))
    if (frame.type === 'delta' && this.table.applyDelta(readDelta(data)).kind === 'gap') this.gaps++
    if (frame.type === 'snapshot' || frame.type === 'delta') this.onTable?.()
  }
}
