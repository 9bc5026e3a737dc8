import { defineScript, loadScript, type RedisScript } from '@firebreak/redis'

/*
 * Fencing tokens.
 *
 * A token is issued inside the script that takes the lock, and is greater than every token issued before for that
 * lock. It is a clock with a counter: an epoch starts at the microseconds of Redis' clock and lasts a second, and
 * within it each acquisition counts one up. An acquisition takes Redis more than a microsecond, so tokens never run
 * ahead of the clock, and whoever has lost the counter continues above all that was issued:
 *
 * - A Redis that restarted empty starts an epoch at its clock.
 * - A replica that was promoted before it had the last tokens finds its counter expired: no failover is done within
 *   the second that an epoch lasts.
 * - Where the clock was set back, the end of the last epoch counts instead; it is kept for a day after its last use,
 *   so names of locks that nobody uses any more leave nothing behind.
 * - Where both happened at once, the highest token that the asking process saw before it had to reconnect counts.
 *
 * What is left is a Redis emptied and its clock set back, and no process that had a lock before asking again.
 *
 * The counter is one INCR for all but the first acquisition of a second; reading the clock and keeping a maximum on
 * each would take three calls, on the one path where every call shows (`uncontended-vs-raw` of `bench/locks.ts`).
 *
 * Microseconds since 1970 stay below 2^53 until the year 2255, so a token is a safe integer in JavaScript, a double
 * in Lua and a BIGINT in SQL.
 */
const nextToken = /* @__PURE__ */ loadScript(new URL('./next-token.lua', import.meta.url))

/** A script that may call `nextToken(counter, epoch, floor)`. */
export function loadTokenScript(url: URL): RedisScript {
  const script = loadScript(url)
  const asFunction = `local function nextToken(counter, epoch, floor)\nfloor = tonumber(floor)\n${nextToken.source}end\n`
  return defineScript(script.name, asFunction + script.source)
}

/** A script that ends with issuing a token: it sets `counter`, `epoch` and `floor`, and saves making the function. */
export function loadTokenEnding(url: URL): RedisScript {
  const script = loadScript(url)
  return defineScript(script.name, script.source + nextToken.source)
}
