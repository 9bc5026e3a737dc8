import type { RespClient, RespValue } from '@firebreak/core/resp'
import { list, number, text } from '../connect/replies.ts'
import { pause } from './pause.ts'
import type { Probe } from './probe.ts'

/** Buckets of one SCAN: what a write then asks about. */
const defaultCount = 32
const defaultCommandsPerWrite = 96
/** A server that hangs does not make us pause for as long again. */
const longestPauseMs = 50

/** How to go through a server's keys. */
export interface ScanOptions {
  /** Only keys that match this glob, filtered by the server. */
  readonly match?: string
  /** Only keys of this type, filtered by the server (6.0 and later). */
  readonly type?: string
  /** SCAN's COUNT: buckets that the server visits in one go, while nobody else is served. @default 32 */
  readonly count?: number
  /** Commands per write: what the server answers before it turns to the next client. @default 96 */
  readonly commandsPerWrite?: number
  /** Pause after each page for as long as it took: half the speed, and other clients notice nothing. @default false */
  readonly isGentle?: boolean
  /** Maximum keys per second and server. @default no limit */
  readonly keysPerSecond?: number
  /** Stops the scan: what was found until then is kept. */
  readonly signal?: AbortSignal
}

/** What to ask about each key, and who receives the answers. */
export interface KeyProbe {
  readonly probe: Probe
  readonly take: (key: Uint8Array, reply: RespValue, index: number) => void
}

/**
 * Goes through a server's keys with SCAN and asks something about each.
 *
 * One small page of keys, then one small write with the commands about them and the SCAN for the next page: one round
 * trip per page. More in flight, or larger pieces, would be faster, but at the expense of others: Redis reads up to 16
 * KB of a client's input at once and answers all of it before it turns to the next client, so a large piece is a long
 * wait for everybody else, and a client that always has more waiting monopolises the server. With pieces of 32 keys,
 * another client's GET waits for about as long as it takes itself; with two pages of 512 in flight its median was ten
 * times as high. (`npm run -s bench -- find` measures speed and median together.)
 */
export async function scanNode(
  connection: RespClient,
  options: ScanOptions,
  page: (keys: readonly Uint8Array[]) => Promise<void>,
): Promise<{ isComplete: boolean }> {
  const { signal, keysPerSecond, isGentle = false } = options
  const startedAt = performance.now()
  let keys = 0
  let cursor = '0'
  const ask = () => {
    const reply = scan(connection, cursor, options)
    // A stopped scan abandons it; a failed connection is reported by the questions too, and first.
    reply.catch(() => {})
    return reply
  }
  let next = ask()
  do {
    if (signal?.aborted) return { isComplete: false }
    const pageAt = performance.now()
    const reply = await next
    cursor = text(reply[0])
    const found = list(reply[1]) as readonly Uint8Array[]
    const asked = found.length > 0 ? page(found) : undefined
    // After the first questions about this page, in the same write.
    if (cursor !== '0') next = ask()
    await asked
    keys += found.length
    if (isGentle) await pause(Math.min(longestPauseMs, performance.now() - pageAt), signal)
    if (keysPerSecond !== undefined) await pause(startedAt + (keys / keysPerSecond) * 1000 - performance.now(), signal)
  } while (cursor !== '0')
  return { isComplete: true }
}

async function scan(connection: RespClient, cursor: string, options: ScanOptions): Promise<readonly RespValue[]> {
  const args: (string | number)[] = ['SCAN', cursor, 'COUNT', options.count ?? defaultCount]
  if (options.match !== undefined) args.push('MATCH', options.match)
  if (options.type !== undefined) args.push('TYPE', options.type)
  return list(await connection.send(args))
}

/** Asks about the keys of a page, `commandsPerWrite` commands per write. */
export async function probeKeys(
  connection: RespClient,
  keys: readonly Uint8Array[],
  probes: readonly KeyProbe[],
  commandsPerWrite: number = defaultCommandsPerWrite,
): Promise<void> {
  const chunk = Math.max(1, Math.floor(commandsPerWrite / probes.length))
  for (let from = 0; from < keys.length; from += chunk) {
    const to = Math.min(keys.length, from + chunk)
    await Promise.all(
      probes.map(({ probe, take }) =>
        connection.batch(probe.encode(keys, from, to), to - from, (reply, index) =>
          take(keys[from + index]!, reply, from + index),
        ),
      ),
    )
  }
}

/** DBSIZE, for the progress of a scan; 0 if it is refused. */
export async function keyCount(connection: RespClient): Promise<number> {
  return number(await connection.send(['DBSIZE']).catch(() => 0))
}
