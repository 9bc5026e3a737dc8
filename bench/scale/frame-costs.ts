import { systemRuntime } from '@firebreak/core'
import { parseRule } from '@firebreak/core/rules'
import { fakeRuntime, redisCli, startRedis } from '@firebreak/testkit'
import { WebSocket, WebSocketServer } from 'ws'
import { HubCore } from '../../packages/hub/src/hub-core.ts'
import { MemoryStore } from '../../packages/hub/src/store/memory-store.ts'
import { openRedisStore } from '../../packages/hub/src/store/open-redis-store.ts'
import { ReportPool } from './report-pool.ts'

/** Microseconds of one core that a hub spends on a frame. */
export interface FrameCosts {
  /** A report as the core takes it: for itself, and for each of its rows. */
  readonly reportUs: number
  readonly rowUs: number
  /** A frame through a WebSocket, in either direction. */
  readonly socketUs: number
  /** Microseconds of its core that the hubs' Redis spends on a command, of the mix that a hub with hot keys sends. */
  readonly storeUs: number
}

/** Measures what is charged later: the real core with real reports, and real sockets of this process. */
export async function measureCosts(scale = 1): Promise<FrameCosts> {
  const few = await reportCost(5, Math.round(6000 * scale))
  const many = await reportCost(200, Math.round(2000 * scale))
  const rowUs = Math.max(0, (many.us - few.us) / (many.rows - few.rows))
  return {
    rowUs,
    reportUs: few.us - few.rows * rowUs,
    socketUs: await socketCost(Math.round(10_000 * scale)),
    storeUs: await storeCost(3000 * scale),
  }
}

async function reportCost(accesses: number, count: number): Promise<{ readonly us: number; readonly rows: number }> {
  const runtime = fakeRuntime(1)
  const core = await HubCore.open(new MemoryStore(), { runtime, loadOf: () => 0 })
  const pool = new ReportPool(runtime.random, 1_000_000)
  let rows = 0
  const frames = Array.from({ length: count }, (_, index) => {
    const report = pool.report({
      accesses,
      samplingFloor: 1,
      sensor: index % 100,
      sequence: index + 1,
      nowMs: runtime.clock.now(),
    })
    rows += report.rows
    return report
  })
  const take = (from: number, to: number): void => {
    for (const { bytes, payloadStart, sequence } of frames.slice(from, to))
      core.collector.collectBinary(bytes, payloadStart, sequence)
  }
  // A third makes it warm.
  const warm = Math.floor(count / 3)
  take(0, warm)
  const us = cpuUs(() => take(warm, count)) / (count - warm)
  await core.close()
  return { us, rows: rows / count }
}

async function socketCost(count: number): Promise<number> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false })
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  let received = 0
  let whenAll: () => void = () => {}
  server.on('connection', (socket) => {
    socket.on('message', () => {
      if (++received === count) whenAll()
    })
  })
  const client = new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false })
  await new Promise((resolve) => client.once('open', resolve))
  const frame = new Uint8Array(400).fill(7)
  const begin = process.threadCpuUsage()
  const all = new Promise<void>((resolve) => (whenAll = resolve))
  for (let sent = 0; sent < count; sent++) {
    client.send(frame)
    // As from many sensors: a few at a time.
    if (sent % 20 === 19) await new Promise((resolve) => setImmediate(resolve))
  }
  await all
  const { user, system } = process.threadCpuUsage(begin)
  client.terminate()
  server.close()
  // One end sends what the other receives.
  return (user + system) / count / 2
}

/** A real hub before a real Redis: its ticks, and posts of some hundred keys that are hot or nearly so. */
async function storeCost(forMs: number): Promise<number> {
  const server = await startRedis()
  const core = await HubCore.open(await openRedisStore(server.url), { loadOf: () => 0 })
  const rule = { id: 'item', prefix: 'item:', threshold: 50, windowMs: 1000, strategy: 'LocalCache' }
  await core.putRule(parseRule(rule), 'bench')
  core.start()
  const pool = new ReportPool(Math.random, 1000)
  const used = async (): Promise<{ us: number; commands: number }> => {
    const info = await redisCli(server.port, 'INFO', 'everything')
    const figure = (name: string): number => Number(new RegExp(`${name}:([\\d.]+)`).exec(info)?.[1] ?? 0)
    const seconds = figure('used_cpu_user') + figure('used_cpu_sys')
    return { us: seconds * 1e6, commands: figure('total_commands_processed') }
  }
  const before = await used()
  const { clock } = systemRuntime
  const endMs = clock.now() + forMs
  for (let sequence = 1; clock.now() < endMs; sequence++) {
    for (let sensor = 0; sensor < 20; sensor++) {
      const nowMs = clock.now()
      const report = pool.report({ accesses: 200, samplingFloor: 1, sensor, sequence, nowMs })
      core.collector.collectBinary(report.bytes, report.payloadStart, report.sequence)
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  const after = await used()
  await core.close()
  await server.stop()
  return (after.us - before.us) / (after.commands - before.commands)
}

function cpuUs(work: () => void): number {
  const begin = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(begin)
  return user + system
}
