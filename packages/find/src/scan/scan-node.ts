import { ErrorReply, encodeCommand, type RespValue } from '@firebreak/core'
import { type RedisConnection, ReplyError } from '../connect/connection.ts'
import { list, number, text } from '../connect/replies.ts'
import { pause } from './pause.ts'
import type { Probe } from './probe.ts'

/** Keys of one page and one write. */
const defaultChunk = 1024
/** A server that hangs is not waited for as long again. */
const longestPauseMs = 50
/** The pause after a page, as a share of the time that the page took. */
const pauseShare = 0.5

/** How the keys of a server are gone through. */
export interface ScanOptions {
  /** Only keys that match this glob, filtered by the server. */
  readonly match?: string
  /** Only keys of this type, filtered by the server (6.0 and later). */
  readonly type?: string
  /** SCAN's COUNT: buckets the server looks at in one go, while nobody else is served. @default 1024 */
  readonly count?: number
  /** Keys that are asked about in one write. @default 1024 */
  readonly chunk?: number
  /** Pauses after each page for half as long as it took. @default true */
  readonly isGentle?: boolean
  /** Keys a second and server at most. @default no limit */
  readonly keysPerSecond?: number
  /** Ends the scan: what was found up to there stands. */
  readonly signal?: AbortSignal
}

/** What is asked for each key, and who takes the answers. */
export interface KeyProbe {
  readonly probe: Probe
  readonly take: (key: Uint8Array, reply: RespValue, index: number) => void
}

/**
 * Goes through a server's keys with SCAN, and asks a question about each.
 *
 * One page of keys, then the questions about all of them, then a pause half as long as both took. Having more in
 * flight would be faster, but at the others' cost: Redis reads up to 16 KB of a client's input at once and answers all
 * of it before it turns to the next client, so whoever always has more waiting takes the server for itself. With the
 * pause it is free for half of the time or more, so the median of other clients' GETs hardly moves; without it, and with
 * two pages in flight, it was five times as high. A server that is busy with others answers later, and so gets longer
 * pauses: the scan gives way by itself. (`npm run -s bench -- find` measures speed and median together.)
 */
export async function scanNode(
  connection: RedisConnection,
  options: ScanOptions,
  page: (keys: readonly Uint8Array[]) => Promise<void>,
): Promise<{ isComplete: boolean }> {
  const { signal, keysPerSecond, isGentle = true } = options
  const startedAt = performance.now()
  let keys = 0
  let cursor = '0'
  do {
    if (signal?.aborted) return { isComplete: false }
    const pageAt = performance.now()
    const reply = await scan(connection, cursor, options)
    cursor = text(reply[0])
    const found = list(reply[1]) as readonly Uint8Array[]
    if (found.length > 0) await page(found)
    keys += found.length
    if (isGentle) await pause(Math.min(longestPauseMs, (performance.now() - pageAt) * pauseShare), signal)
    if (keysPerSecond !== undefined) await pause(startedAt + (keys / keysPerSecond) * 1000 - performance.now(), signal)
  } while (cursor !== '0')
  return { isComplete: true }
}

async function scan(connection: RedisConnection, cursor: string, options: ScanOptions): Promise<readonly RespValue[]> {
  const args: (string | number)[] = ['SCAN', cursor, 'COUNT', options.count ?? defaultChunk]
  if (options.match !== undefined) args.push('MATCH', options.match)
  if (options.type !== undefined) args.push('TYPE', options.type)
  let answer: RespValue = null
  await connection.batch(encodeCommand(args), 1, (reply) => {
    answer = reply
  })
  if ((answer as RespValue) instanceof ErrorReply) throw new ReplyError('SCAN', answer as unknown as ErrorReply)
  return list(answer)
}

/** Asks questions about the keys of a page, `chunk` keys a write. */
export async function probeKeys(
  connection: RedisConnection,
  keys: readonly Uint8Array[],
  probes: readonly KeyProbe[],
  chunk: number = defaultChunk,
): Promise<void> {
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

/** DBSIZE, for the progress of a scan; 0 where it is refused. */
export async function keyCount(connection: RedisConnection): Promise<number> {
  return number(await connection.send(['DBSIZE']).catch(() => 0))
}
