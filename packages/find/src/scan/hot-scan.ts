import { keySlotOfBytes } from '@firebreak/core/commands'
import type { RespClient } from '@firebreak/core/resp'
import { infoFields, list, number, text } from '../connect/replies.ts'
import type { ServerNode } from '../connect/topology.ts'
import { FindError } from '../errors.ts'
import type { Finding } from '../findings/finding.ts'
import { newFinding } from '../findings/finding.ts'
import { escapeKey } from '../keys/escape-key.ts'
import type { FoundKey } from '../keys/found-key.ts'
import { TopList } from '../keys/top-list.ts'
import { defaultLfuSettings, estimateAccessRate, type LfuSettings } from './access-rate.ts'
import { pause } from './pause.ts'
import { Probe } from './probe.ts'
import { type FinderOptions, ProgressSum, runOnNodes } from './run-on-nodes.ts'
import { keyCount, probeKeys, type ScanOptions, scanNode } from './scan-node.ts'

/** Options for finding hot keys with SCAN and OBJECT FREQ. */
export interface HotScanOptions extends FinderOptions, ScanOptions {
  /**
   * The hottest keys are read a second time after this long, to tell a key that is getting hot from one that was.
   * @default 2000
   */
  readonly resampleMs?: number
}

interface Candidate {
  readonly key: Buffer
  readonly frequency: number
  readonly readAt: number
}

const frequencyProbe = new Probe(['OBJECT', 'FREQ'])

/** Finds the hottest keys of a server with an LFU eviction policy, using the counter that it keeps for each key. */
export async function findHotByScan(options: HotScanOptions): Promise<Finding> {
  const startedAtMs = Date.now()
  const top = options.top ?? 20
  const progress = new ProgressSum('keys', options.progress)
  const { topology, results } = await runOnNodes(options, (node, connection) =>
    scanOne(node, connection, options, top, progress),
  )
  const merged = new TopList<FoundKey>(top, ({ key }) => key)
  // Sorted by counter first, which comes from the server. The estimate only ranks keys with the same counter.
  for (const { keys } of results) {
    for (const key of keys) merged.add(key.frequency! + Math.min(0.999, key.accessesPerSecond! / 1e9), key)
  }
  return newFinding('hot', 'scan', topology, startedAtMs, {
    isComplete: results.every(({ isComplete }) => isComplete),
    scanned: results.reduce((sum, { scanned }) => sum + scanned, 0),
    keys: merged.sorted(),
    notes: [...new Set(results.flatMap(({ notes }) => notes))],
  })
}

async function scanOne(
  node: ServerNode,
  connection: RespClient,
  options: HotScanOptions,
  top: number,
  progress: ProgressSum,
) {
  await requireLfu(connection)
  const settings = await lfuSettings(connection)
  progress.expect(await keyCount(connection))
  const candidates = new TopList<Candidate>(top, ({ key }) => key.toString('latin1'))
  let scanned = 0
  const probe = {
    probe: frequencyProbe,
    take: (key: Uint8Array, reply: unknown) => {
      // A key that has since been deleted answers nil or an error; it is not hot.
      if (typeof reply === 'number' && candidates.admits(reply)) {
        candidates.add(reply, { key: Buffer.from(key), frequency: reply, readAt: performance.now() })
      }
    },
  }
  const { isComplete } = await scanNode(connection, options, async (keys) => {
    await probeKeys(connection, keys, [probe], options.commandsPerWrite)
    scanned += keys.length
    progress.add(keys.length)
  })
  const keys = await describe(node, connection, candidates.sorted(), settings, options)
  const notes = isComplete ? [] : ['the scan was stopped early: it may have missed hotter keys']
  if (settings.decayMinutes === 0) notes.push('lfu-decay-time is 0: counters never fall, so rates cannot be estimated')
  return { isComplete, scanned, keys, notes }
}

/** Reads the counters again after a while, along with the types, and estimates rates. */
async function describe(
  node: ServerNode,
  connection: RespClient,
  candidates: readonly Candidate[],
  settings: LfuSettings,
  options: HotScanOptions,
): Promise<FoundKey[]> {
  const { resampleMs = 2000, signal } = options
  if (candidates.length > 0 && resampleMs > 0 && !signal?.aborted) await pause(resampleMs, signal)
  const keys = candidates.map(({ key }) => key)
  const again = new Array<number>(keys.length).fill(Number.NaN)
  const types = new Array<string>(keys.length).fill('')
  const readAt = performance.now()
  await probeKeys(connection, keys, [
    { probe: frequencyProbe, take: (_key, reply, index) => void (again[index] = number(reply)) },
    { probe: new Probe(['TYPE']), take: (_key, reply, index) => void (types[index] = text(reply)) },
  ])
  return candidates.map(({ key, frequency, readAt: firstAt }, index) => {
    const now = Number.isNaN(again[index]!) ? frequency : again[index]!
    const seconds = (readAt - firstAt) / 1000
    const { accessesPerSecond, relativeError } = estimateAccessRate((frequency + now) / 2, settings, {
      steps: now - frequency,
      seconds,
    })
    return {
      key: escapeKey(key),
      node: node.address,
      ...(node.slots === undefined ? {} : { slot: keySlotOfBytes(key) }),
      ...(types[index] === '' || types[index] === 'none'
        ? {}
        : { type: types[index] as NonNullable<FoundKey['type']> }),
      frequency: Math.max(now, frequency),
      accessesPerSecond,
      ...(Number.isFinite(relativeError) ? { relativeError } : {}),
    }
  })
}

async function requireLfu(connection: RespClient): Promise<void> {
  const policy = infoFields(await connection.send(['INFO', 'memory'])).get('maxmemory_policy')
  if (policy === undefined || policy.includes('lfu')) return
  throw new FindError(
    'FB_FIND_NO_LFU',
    `the policy of ${connection.address} is ${policy}: it keeps no access counters, so a scan cannot tell which keys are hot.
Either change it (takes effect at once; counters of existing keys are meaningless for some minutes):
  CONFIG SET maxmemory-policy ${policy.startsWith('volatile') ? 'volatile-lfu' : 'allkeys-lfu'}
or use another method:
  firebreak find hot --capture   reads the network, costs the server nothing (on its host, as root)
  firebreak find hot --monitor   works everywhere, slows the server while it runs
  firebreak find hot --server    asks the server itself (Redis 8.6, Valkey 9.2 and later)`,
  )
}

async function lfuSettings(connection: RespClient): Promise<LfuSettings> {
  const read = async (name: string, otherwise: number) => {
    // CONFIG is often forbidden; then the defaults are the best we can do.
    const reply = await connection.send(['CONFIG', 'GET', name]).catch(() => null)
    const value = Number(text(list(reply)[1]) || Number.NaN)
    return Number.isNaN(value) ? otherwise : value
  }
  return {
    logFactor: await read('lfu-log-factor', defaultLfuSettings.logFactor),
    decayMinutes: await read('lfu-decay-time', defaultLfuSettings.decayMinutes),
  }
}
