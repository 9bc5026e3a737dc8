import { keySlotOfBytes } from '@firebreak/core/commands'
import { RedisReplyError, type RespClient, type RespValue } from '@firebreak/core/resp'
import { bytes, fields, infoFields, list, number } from '../connect/replies.ts'
import type { ServerNode } from '../connect/topology.ts'
import { FindError } from '../errors.ts'
import { type Finding, newFinding } from '../findings/finding.ts'
import { escapeKey } from '../keys/escape-key.ts'
import type { FoundKey } from '../keys/found-key.ts'
import { heaviest } from '../keys/merge-big-keys.ts'
import { pause } from '../scan/pause.ts'
import { type FinderOptions, runOnNodes } from '../scan/run-on-nodes.ts'

/** How to read a server's own record of hot keys. */
export interface HotServerOptions extends FinderOptions {
  /** How long Redis records before we read. @default 10000 */
  readonly durationMs?: number
}

interface NodeAnswer {
  readonly keys: readonly FoundKey[]
  readonly notes: readonly string[]
}

/**
 * Asks the servers themselves, with HOTKEYS. Two servers have a command of that name with nothing else in common: Redis
 * (8.6) records on demand, CPU time and network bytes for each key; Valkey (9.2) records continuously if
 * `hotkeys-top-k` is set, accesses per second in the last window.
 */
export async function findHotByServer(options: HotServerOptions): Promise<Finding> {
  const startedAtMs = Date.now()
  const top = options.top ?? 20
  const { topology, results } = await runOnNodes(options, (node, connection) => askOne(node, connection, options, top))
  const keys = results.flatMap(({ keys }) => keys)
  const weightOf = (key: FoundKey) => key.accessesPerSecond ?? key.cpuMicroseconds ?? key.networkBytes ?? 0
  return newFinding('hot', 'server', topology, startedAtMs, {
    isComplete: !options.signal?.aborted,
    scanned: keys.length,
    keys: heaviest(keys, top, weightOf),
    notes: [...new Set(results.flatMap(({ notes }) => notes))],
  })
}

async function askOne(
  node: ServerNode,
  connection: RespClient,
  options: HotServerOptions,
  top: number,
): Promise<NodeAnswer> {
  const info = infoFields(await connection.send(['INFO', 'server']).catch(() => ''))
  try {
    return info.has('valkey_version')
      ? await askValkey(node, connection)
      : await askRedis(node, connection, options, top)
  } catch (error) {
    if (!(error instanceof RedisReplyError) || !/unknown command|unknown subcommand/i.test(error.message)) throw error
    const version = info.get('valkey_version') ?? info.get('redis_version') ?? 'of unknown version'
    throw new FindError(
      'FB_FIND_NO_HOTKEYS',
      `${node.address} (${version}) has no HOTKEYS, which came with Redis 8.6 and Valkey 9.2. Use another method:
  firebreak find hot --scan      if the eviction policy is LFU
  firebreak find hot --capture   on the server's host
  firebreak find hot --monitor   anywhere, at a cost`,
    )
  }
}

async function askValkey(node: ServerNode, connection: RespClient): Promise<NodeAnswer> {
  const entries = list(await connection.send(['HOTKEYS', 'GET']))
  const keys = entries.map((entry) => {
    const values = fields(entry)
    const key = bytes(values.get('key'))
    return {
      ...describe(node, key),
      database: number(values.get('db')),
      accessesPerSecond: number(values.get('qps')),
    }
  })
  const notes =
    keys.length > 0
      ? []
      : [
          `${node.address} reports nothing: hot key tracking is off (CONFIG SET hotkeys-top-k 20), or no window has ended yet`,
        ]
  return { keys, notes }
}

async function askRedis(
  node: ServerNode,
  connection: RespClient,
  options: HotServerOptions,
  top: number,
): Promise<NodeAnswer> {
  const seconds = Math.max(1, Math.ceil((options.durationMs ?? 10_000) / 1000))
  const notes: string[] = []
  let isOurs = true
  try {
    // It stops by itself even if we never return.
    const count = Math.max(1, Math.min(64, top))
    await connection.send(['HOTKEYS', 'START', 'METRICS', 2, 'CPU', 'NET', 'COUNT', count, 'DURATION', seconds])
  } catch (error) {
    if (!(error instanceof RedisReplyError) || !/progress|already|started/i.test(error.message)) throw error
    isOurs = false
    notes.push(
      `${node.address} is already being recorded by somebody else: showing that recording and leaving it running`,
    )
  }
  if (isOurs) await pause(seconds * 1000, options.signal)
  const values = hotkeysReply(await connection.send(['HOTKEYS', 'GET']))
  if (isOurs) {
    await connection.send(['HOTKEYS', 'STOP']).catch(() => {})
    await connection.send(['HOTKEYS', 'RESET']).catch(() => {})
  }
  const totalMicroseconds = number(values.get('all-commands-all-slots-us'))
  const found = new Map<string, FoundKey>()
  for (const [key, cpuMicroseconds] of pairs(values.get('by-cpu-time-us'))) {
    const share = totalMicroseconds > 0 ? cpuMicroseconds / totalMicroseconds : 0
    found.set(key.toString('latin1'), { ...describe(node, key), cpuMicroseconds, share })
  }
  for (const [key, networkBytes] of pairs(values.get('by-net-bytes'))) {
    const name = key.toString('latin1')
    found.set(name, { ...describe(node, key), ...found.get(name), networkBytes })
  }
  return { keys: [...found.values()], notes }
}

/** The map may be bare or in a list of one. */
function hotkeysReply(reply: RespValue): Map<string, RespValue> {
  const items = list(reply)
  return items.length === 1 ? fields(items[0]) : fields(reply)
}

function pairs(reply: RespValue | undefined): [Buffer, number][] {
  const items = list(reply)
  const result: [Buffer, number][] = []
  for (let index = 0; index + 1 < items.length; index += 2) result.push([bytes(items[index]), number(items[index + 1])])
  return result
}

function describe(node: ServerNode, key: Buffer): FoundKey {
  return {
    key: escapeKey(key),
    node: node.address,
    ...(node.slots === undefined ? {} : { slot: keySlotOfBytes(key) }),
  }
}
