import { defineScript, loadScript, type RedisScript } from '@firebreak/redis'

/*
 * Fencing tokens.
 *
 * A token is issued inside the script that takes the lock, and is greater than every token issued before for that lock.
 * It is a clock with a counter: an epoch starts at the microseconds of Redis' clock and lasts a second, and within it
 * each acquisition counts one up. An acquisition takes Redis more than a microsecond, so tokens never run ahead of the
 * clock, and a server that has lost the counter continues above everything issued:
 *
 * - A Redis that restarted empty starts an epoch at its clock.
 * - A replica that was promoted before it had the last tokens, or a Redis that restarted from an older file, may find
 *   a counter that lags. So a name's first acquisition on each new connection starts an epoch at Redis' clock, whatever
 *   the counter says: what was lost costs a jump forward. (Nobody reaches another server but over a new connection.)
 * - Where the clock was set back, the end of the last epoch counts instead; it is kept for `tokenMemoryMs` after its
 *   last use, so names of locks that nobody uses any more leave nothing behind.
 * - Where both happened at once, the highest token that the asking process saw before it had to reconnect counts.
 *
 * Remaining risks: clocks of master and replica that differ by more than the time between two acquisitions, and a Redis
 * that was emptied and had its clock set back, if no process that held a lock before asks again. If a lock only counts
 * as taken once a replica or the file has it (`replicas`, `fsync`), the counter is not lost in the first place.
 *
 * The counter is one INCR for all but the first acquisition of a second; reading the clock and keeping a maximum each
 * time would take three calls, on a path where every call matters (`uncontended-vs-raw` of `bench/locks.ts`).
 *
 * Microseconds since 1970 stay below 2^53 until the year 2255, so a token is a safe integer in JavaScript, a double
 * in Lua and a BIGINT in SQL.
 */
const nextToken = /* @__PURE__ */ loadScript(new URL('./next-token.lua', import.meta.url))

/** How long the end of an epoch is kept by default. */
export const defaultTokenMemoryMs = 3_600_000

/** What a script needs to know about the token to be issued. */
export interface TokenCall {
  /** The token must be greater than this one, the highest that the client saw before its last reconnect. */
  readonly tokenFloor: number
  /** The first acquisition of the name on this connection. */
  readonly isFirst: boolean
  readonly tokenMemoryMs: number
}

/** The arguments of a token for `nextToken`. */
export function tokenArgs({ tokenFloor, isFirst, tokenMemoryMs }: TokenCall): [number, number, number] {
  return [tokenFloor, isFirst ? 1 : 0, tokenMemoryMs]
}

/** A script that may call `nextToken(counter, epoch, floor, isFirst, memoryMs)`. */
export function loadTokenScript(url: URL): RedisScript {
  const script = loadScript(url)
  const head = 'local function nextToken(counter, epoch, floor, isFirst, memoryMs)\nfloor = tonumber(floor)\n'
  return defineScript(script.name, `${head}${nextToken.source}end\n${script.source}`)
}

/** A script that ends by issuing a token: it sets what `nextToken` expects, without defining the function. */
export function loadTokenEnding(url: URL): RedisScript {
  const script = loadScript(url)
  return defineScript(script.name, script.source + nextToken.source)
}
