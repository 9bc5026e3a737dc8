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

/** Bounds of watching a server with MONITOR. */
export interface MonitorOptions extends FinderOptions, CommandAccessCounterOptions {
  /** From the first burst to the end of the last. @default 10000 */
  readonly durationMs?: number
  /** How long MONITOR runs at a time. @default 500 */
  readonly burstMs?: number
  /** How long it rests in between; 0 watches without a break. @default 500 */
  readonly restMs?: number
  /** Bytes read of one server, after which it is left alone. @default 64 MiB */
  readonly maxBytes?: number
  /** Bytes that may wait in the server for us before MONITOR is ended from its side. @default 16 MiB */
  readonly maxServerBytes?: number
}

interface BurstResult {
  readonly seconds: number
  readonly end: 'time' | 'bytes' | 'killed' | 'signal'
}

/** What MONITOR does to the server, for whoever is about to start it. */
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

/** Watches one server; also used by `find slots`, which wants the slots of what was seen. */
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
      notes.push(`MONITOR on ${node.address} was ended by the guard: commands came faster than they could be read`)
      break
    }
    await pause(Math.min(restMs, endsAt - performance.now()), signal)
  }
  if (budget.bytes >= maxBytes) notes.push(`watching ${node.address} ended after ${maxBytes} bytes (--max-bytes)`)
  if (signal?.aborted) isComplete = false
  return { node, counter, seconds, bursts, killed, bytes: budget.bytes, notes, isComplete }
}

/** What cannot be ended from the server's side is not started. */
async function requireStop(node: ServerNode, side: RespClient): Promise<void> {
  try {
    await side.send(['CLIENT', 'KILL', 'ID', Number.MAX_SAFE_INTEGER])
  } catch (cause) {
    throw new FindError(
      'FB_FIND_MONITOR',
      `MONITOR on ${node.address} could not be ended if this process stood still: the user may not CLIENT KILL. Grant +client|kill +client|list +client|id +monitor, or look with --capture or --scan`,
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
          // A line without end is no line: what is kept of it has a bound too.
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
    // The server may be slow to see that we have gone, with much waiting for us: it is told.
    await side.send(['CLIENT', 'KILL', 'ID', clientId]).catch(() => {})
  }
}

function count(line: string, counter: CommandAccessCounter): void {
  const parsed = parseMonitorLine(line)
  // Commands of scripts follow the EVAL that ran them; they are accesses too.
  if (parsed !== undefined) counter.add(parsed.args, line.length)
}
