import { encodeCommand, type RespClient } from '@firebreak/core/resp'
import { CommandAccessCounter, type CommandAccessCounterOptions } from '../access/command-access-counter.ts'
import { openServer } from '../connect/open-server.ts'
import { number } from '../connect/replies.ts'
import type { ServerNode } from '../connect/topology.ts'
import { FindError } from '../errors.ts'
import { type Finding, newFinding } from '../findings/finding.ts'
import { heaviest } from '../keys/merge-big-keys.ts'
import { pause } from '../scan/pause.ts'
import { type FinderOptions, runOnNodes } from '../scan/run-on-nodes.ts'
import { startGuard } from './monitor-guard.ts'
import { parseMonitorLine } from './monitor-line.ts'

/** Bounds for watching a server with MONITOR. */
export interface MonitorOptions extends FinderOptions, CommandAccessCounterOptions {
  /** From the start of the first burst to the end of the last. @default 10000 */
  readonly durationMs?: number
  /** How long MONITOR runs at a time. @default 500 */
  readonly burstMs?: number
  /** The pause between bursts; 0 watches without a break. @default 500 */
  readonly restMs?: number
  /** Stops watching a server after reading this many bytes. @default 64 MiB */
  readonly maxBytes?: number
  /** Output that may pile up in the server before MONITOR is ended from its side. @default 16 MiB */
  readonly maxServerBytes?: number
}

interface BurstResult {
  readonly seconds: number
  readonly end: 'time' | 'bytes' | 'killed' | 'signal'
}

/** What MONITOR does to the server, shown before it starts. */
export const monitorWarning =
  'MONITOR makes the server send every command here: it can halve its throughput while it runs (bursts keep it short)'

/** Counts accesses with MONITOR, in bursts, within hard bounds. */
export async function findHotByMonitor(options: MonitorOptions): Promise<Finding> {
  const startedAtMs = Date.now()
  const top = options.top ?? 20
  const { topology, results } = await runOnNodes(options, (node, connection) => watchOne(node, connection, options))
  const keys = results.flatMap(({ counter, node, seconds }) =>
    counter.hottest(top, seconds).map((key) => ({ ...key, node: node.address })),
  )
  const accesses = results.reduce((sum, { counter }) => sum + counter.accesses, 0)
  return newFinding('hot', 'monitor', topology, startedAtMs, {
    isComplete: results.every(({ isComplete }) => isComplete),
    scanned: results.reduce((sum, { counter }) => sum + counter.commandCount, 0),
    keys: heaviest(keys, top, ({ accessesPerSecond }) => accessesPerSecond ?? 0).map((key) => ({
      ...key,
      share: accesses === 0 ? 0 : key.accesses! / accesses,
    })),
    counts: {
      accesses,
      bytes: results.reduce((sum, { bytes }) => sum + bytes, 0),
      bursts: results.reduce((sum, { bursts }) => sum + bursts, 0),
      killed: results.reduce((sum, { killed }) => sum + killed, 0),
    },
    notes: [...new Set(results.flatMap(({ notes }) => notes))],
  })
}

/** Watches one server; also used by `find slots`, which wants the slots of the accesses seen. */
export async function watchOne(node: ServerNode, side: RespClient, options: MonitorOptions) {
  const { durationMs = 10_000, burstMs = 500, restMs = 500, maxBytes = 64 << 20, signal } = options
  await requireStop(node, side)
  const counter = new CommandAccessCounter(options)
  const endsAt = performance.now() + durationMs
  const notes: string[] = []
  const budget = { bytes: 0, maxBytes }
  let seconds = 0
  let bursts = 0
  let killed = 0
  let isComplete = true
  while (performance.now() < endsAt && !signal?.aborted && budget.bytes < maxBytes) {
    const lengthMs = Math.min(restMs === 0 ? durationMs : burstMs, endsAt - performance.now())
    const result = await burst(node, side, lengthMs, budget, counter, options)
    bursts++
    seconds += result.seconds
    options.progress?.({ unit: 'commands', done: counter.commandCount, total: 0 })
    if (result.end === 'killed') {
      killed++
      notes.push(`MONITOR on ${node.address} was stopped by the guard: commands arrived faster than they could be read`)
      break
    }
    await pause(Math.min(restMs, endsAt - performance.now()), signal)
  }
  if (budget.bytes >= maxBytes) notes.push(`watching ${node.address} ended after ${maxBytes} bytes (--max-bytes)`)
  if (signal?.aborted) isComplete = false
  return { node, counter, seconds, bursts, killed, bytes: budget.bytes, notes, isComplete }
}

/** Does not start what cannot be stopped from the server's side. */
async function requireStop(node: ServerNode, side: RespClient): Promise<void> {
  try {
    await side.send(['CLIENT', 'KILL', 'ID', Number.MAX_SAFE_INTEGER])
  } catch (cause) {
    throw new FindError(
      'FB_FIND_MONITOR',
      `MONITOR on ${node.address} could not be stopped if this process hung, because the user may not run CLIENT KILL. Grant +client|kill +client|list +client|id +monitor, or use --capture or --scan`,
      { cause },
    )
  }
}

async function burst(
  node: ServerNode,
  side: RespClient,
  lengthMs: number,
  budget: { bytes: number; readonly maxBytes: number },
  counter: CommandAccessCounter,
  options: MonitorOptions,
): Promise<BurstResult> {
  const connection = await openServer(node.target)
  const clientId = number(await connection.send(['CLIENT', 'ID']))
  const guard = startGuard({
    target: node.target,
    clientId,
    maxMs: lengthMs + 2000,
    maxServerBytes: options.maxServerBytes ?? 16 << 20,
  })
  const startedAt = performance.now()
  let endedAt = startedAt
  let rest = ''
  try {
    const end = await new Promise<BurstResult['end']>((resolve) => {
      const timer = setTimeout(() => resolve('time'), lengthMs)
      const onAbort = () => resolve('signal')
      options.signal?.addEventListener('abort', onAbort, { once: true })
      const finish = (reason: BurstResult['end']) => {
        clearTimeout(timer)
        options.signal?.removeEventListener('abort', onAbort)
        resolve(reason)
      }
      connection.takeOver(
        encodeCommand(['MONITOR']),
        (chunk) => {
          endedAt = performance.now()
          budget.bytes += chunk.length
          const lines = (rest + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).toString('latin1')).split(
            '\r\n',
          )
          rest = lines.pop()!
          for (const line of lines) count(line, counter)
          if (budget.bytes >= budget.maxBytes) finish('bytes')
          // Something without a line end is not a line: what is kept of it is bounded too.
          else if (rest.length > 1 << 20) rest = ''
        },
        () => finish('killed'),
      )
    })
    endedAt = Math.max(endedAt, end === 'time' || end === 'signal' ? performance.now() : endedAt)
    return { seconds: (endedAt - startedAt) / 1000, end }
  } finally {
    connection.close()
    guard.stdin?.end()
    // The server may be slow to notice that we are gone while it has much output waiting for us, so we tell it.
    await side.send(['CLIENT', 'KILL', 'ID', clientId]).catch(() => {})
  }
}

function count(line: string, counter: CommandAccessCounter): void {
  const parsed = parseMonitorLine(line)
  // A script's commands follow the EVAL that ran them; they are accesses too.
  if (parsed !== undefined) counter.add(parsed.args, line.length)
}
