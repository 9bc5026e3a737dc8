import { createServer, type Server } from 'node:http'
import {
  type ClaimPayload,
  decodeFrame,
  decodeJsonPayload,
  defaultLocalCache,
  encodeInvalidation,
  encodeJsonFrame,
  entryToJson,
  type HeartbeatPayload,
  type HelloPayload,
  type Invalidation,
  parseBinaryReport,
  parseTextReport,
  type Report,
  type StatusPayload,
  type TableDelta,
  type TableEntry,
} from '@firebreak/core'
import { type Rule, ruleDefaults } from '@firebreak/core/rules'
import { type WebSocket, WebSocketServer } from 'ws'

/**
 * A hub for tests: uses the wire format, records what it receives, and sends what the test says. It decides nothing.
 */
export class TestHub {
  readonly hellos: HelloPayload[] = []
  readonly reports: Report[] = []
  readonly textReports: Report[] = []
  readonly statuses: StatusPayload[] = []
  readonly claims: ClaimPayload[] = []
  readonly resyncs: string[] = []
  epoch = 'e1'
  version = 1
  laneHead = 0
  isOff = false
  samplingFloor = 1
  intervalMs = 100
  heartbeatMs = 100
  /** While false, upgrades are refused as by a proxy that only knows HTTP. */
  takesWebSockets = true
  /** While false, reports are accepted but not read: a benchmark is not about their receiver. */
  readsReports = true
  entries: TableEntry[] = []
  rules: Rule[] = []
  /** Added to this hub's clock. */
  clockOffsetMs = 0
  readonly #server: Server
  readonly #sockets = new WebSocketServer({ noServer: true })
  #heart: NodeJS.Timeout | undefined
  #port = 0

  constructor() {
    this.#server = createServer((request, response) => {
      let body = ''
      request.on('data', (chunk) => (body += chunk))
      request.on('end', () => {
        if (request.method === 'POST' && request.url === '/v1/reports')
          this.textReports.push(parseTextReport(body, request.headers['content-type']?.includes('v=2') ? 2 : 1))
        response.end('{}')
      })
    })
    this.#server.on('upgrade', (request, socket, head) => {
      if (!this.takesWebSockets) {
        socket.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n')
        return
      }
      this.#sockets.handleUpgrade(request, socket, head, (client) => this.#accept(client))
    })
  }

  static async start(port = 0): Promise<TestHub> {
    const hub = new TestHub()
    await hub.listen(port)
    return hub
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  get connections(): number {
    return this.#sockets.clients.size
  }

  async listen(port = this.#port): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve))
    this.#port = (this.#server.address() as { port: number }).port
    this.beat()
  }

  /** Dies like a killed process: connections end silently, the port is closed. */
  async kill(): Promise<void> {
    clearTimeout(this.#heart)
    for (const client of this.#sockets.clients) client.terminate()
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /** Makes keys hot: a delta to everyone connected, and part of the table for later connections. */
  heat(redisClusterId: string, keys: readonly string[], changes: Partial<TableEntry> = {}): void {
    const now = this.now()
    this.change(
      keys.map((key) => ({
        redisClusterId,
        key,
        strategy: defaultLocalCache,
        ruleId: 'test',
        reason: 'hot because the test says so',
        since: now,
        until: now + 60_000,
        ...changes,
      })),
    )
  }

  cool(redisClusterId: string, keys: readonly string[]): void {
    this.change(
      [],
      keys.map((key) => ({ redisClusterId, key })),
    )
  }

  /** Changes the table by one version and notifies everyone. */
  change(set: TableEntry[], removed: { redisClusterId: string; key: string }[] = [], more: Partial<TableDelta> = {}) {
    const from = this.version++
    const isIn = (list: readonly { redisClusterId: string; key: string }[], entry: TableEntry) =>
      list.some(({ redisClusterId, key }) => redisClusterId === entry.redisClusterId && key === entry.key)
    this.entries = [...this.entries.filter((entry) => !isIn(set, entry) && !isIn(removed, entry)), ...set]
    const delta: TableDelta = {
      epoch: this.epoch,
      from,
      to: this.version,
      set: set.map(entryToJson),
      removed: removed.map((item) => entryToJson(item as TableEntry)),
      ...more,
    }
    this.broadcast(encodeJsonFrame('delta', 0, delta))
  }

  setRules(rules: Rule[]): void {
    this.rules = rules
    this.change([], [], { rules })
  }

  setOff(isOff: boolean): void {
    this.isOff = isOff
    this.change([], [], { isOff })
  }

  /** Sends a message of the invalidation lane. */
  invalidate(invalidation: Omit<Invalidation, 'sequence'>): void {
    this.laneHead++
    this.broadcast(encodeInvalidation({ ...invalidation, sequence: this.laneHead }))
  }

  broadcast(frame: Uint8Array): void {
    for (const client of this.#sockets.clients) client.send(frame)
  }

  /** Sends a heartbeat now and every `heartbeatMs` from here. */
  beat(): void {
    clearTimeout(this.#heart)
    const payload: HeartbeatPayload = {
      hubTime: this.now(),
      epoch: this.epoch,
      version: this.version,
      laneHead: this.laneHead,
      isOff: this.isOff,
      intervalMs: this.intervalMs,
      samplingFloor: this.samplingFloor,
    }
    this.broadcast(encodeJsonFrame('heartbeat', 0, payload))
    this.#heart = setTimeout(() => this.beat(), this.heartbeatMs)
  }

  /** All accesses of a key that were reported so far. */
  counted(key: string): { count: number; writes: number } {
    const sum = { count: 0, writes: 0 }
    for (const { sections } of [...this.reports, ...this.textReports]) {
      for (const entry of sections.flatMap(({ entries }) => entries)) {
        if (entry.key !== key) continue
        sum.count += entry.count
        sum.writes += entry.writes
      }
    }
    return sum
  }

  now(): number {
    return Date.now() + this.clockOffsetMs
  }

  #accept(client: WebSocket): void {
    client.on('message', (data: Buffer) => this.#received(client, data))
    client.on('error', () => {})
  }

  #received(client: WebSocket, data: Buffer): void {
    const frame = decodeFrame(data)
    switch (frame.type) {
      case 'hello':
        this.hellos.push(decodeJsonPayload<'hello'>(frame))
        this.#welcome(client)
        return
      case 'report':
        if (this.readsReports) this.reports.push(parseBinaryReport(frame.bytes.subarray(frame.payloadStart)))
        return
      case 'status':
        this.statuses.push(decodeJsonPayload<'status'>(frame))
        return
      case 'claim':
        this.claims.push(decodeJsonPayload<'claim'>(frame))
        return
      case 'resync':
        this.resyncs.push(decodeJsonPayload<'resync'>(frame).reason)
        this.#snapshot(client)
    }
  }

  #welcome(client: WebSocket): void {
    const { intervalMs, samplingFloor, heartbeatMs } = this
    client.send(
      encodeJsonFrame('welcome', 0, { hubId: 'test', hubTime: this.now(), intervalMs, samplingFloor, heartbeatMs }),
    )
    this.#snapshot(client)
  }

  #snapshot(client: WebSocket): void {
    const { epoch, version, rules, isOff } = this
    client.send(
      encodeJsonFrame('snapshot', 0, { epoch, version, rules, isOff, entries: this.entries.map(entryToJson) }),
    )
  }
}

/** A rule for all keys with one level. */
export function testRule(enter: number, changes: Partial<Rule> = {}): Rule {
  return {
    ...ruleDefaults,
    id: 'test',
    redisClusterId: '*',
    serviceId: '*',
    pattern: { kind: 'prefix', prefix: '' },
    except: [],
    levels: [{ measure: 'accesses', enter, exit: enter * 0.7, strategies: [defaultLocalCache] }],
    ...changes,
  }
}
