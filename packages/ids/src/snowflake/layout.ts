import { describeValue, InvalidOptionError } from '@firebreak/core'
import { IdsError } from '../errors.ts'

/*
 * A snowflake id is a positive 64-bit number:
 *
 *   63  62                                      22 21         12 11           0
 *  ┌───┬──────────────────────────────────────────┬─────────────┬──────────────┐
 *  │ 0 │ milliseconds since the epoch (41 bits)   │ worker (10) │ sequence (12)│
 *  └───┴──────────────────────────────────────────┴─────────────┴──────────────┘
 *
 * 41 bits of milliseconds last 69.7 years; with the default epoch the last id is on 10 July 2080.
 */

/** Where time starts by default: 4 November 2010, 01:42:54.657 UTC. */
export const defaultEpochMs = 1_288_834_974_657

/** Worker ids are 0 to 1023. */
export const workerCount = 1024

/** How many ids one worker can issue in one millisecond. */
export const idsPerMillisecond = 4096

/** The largest number of milliseconds since the epoch that fits. */
export const maxElapsedMs: number = 2 ** 41 - 1

/** The contents of an id. */
export interface DecodedSnowflake {
  readonly id: string
  /** Milliseconds since 1970. */
  readonly timestampMs: number
  /** The same as ISO 8601. */
  readonly time: string
  readonly workerId: number
  readonly sequence: number
}

/** Takes an id apart; it must have been made with the same epoch. */
export function decodeSnowflake(id: string | bigint, epochMs: number = defaultEpochMs): DecodedSnowflake {
  const value = typeof id === 'bigint' ? id : typeof id === 'string' && /^\d{1,19}$/.test(id) ? BigInt(id) : -1n
  if (value < 0n || value >= 1n << 63n) {
    const sentence = `${describeValue(id)} is not a snowflake id; it must be a whole number from 0 to 9223372036854775807`
    throw new IdsError('FB_IDS_ID_INVALID', sentence, { id: String(id) })
  }
  const timestampMs = Number(value >> 22n) + epochMs
  return {
    id: String(value),
    timestampMs,
    time: new Date(timestampMs).toISOString(),
    workerId: Number((value >> 12n) & 1023n),
    sequence: Number(value & 4095n),
  }
}

/** The maximum number of ids per call. */
const maxCount = 10_000_000

/** Throws unless this many ids may be requested at once. */
export function checkCount(count: number): number {
  if (Number.isInteger(count) && count >= 0 && count <= maxCount) return count
  throw new InvalidOptionError('count', count, `a whole number from 0 to ${maxCount}`)
}

/** Throws unless `workerId` is 0 to 1023. */
export function checkWorkerId(workerId: number): number {
  if (Number.isInteger(workerId) && workerId >= 0 && workerId < workerCount) return workerId
  throw new InvalidOptionError('workerId', workerId, 'a whole number from 0 to 1023')
}
