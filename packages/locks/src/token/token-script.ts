import { defineScript, loadScript, type RedisScript } from '@firebreak/redis'

/*
 * Fencing tokens.
 *
 * A token is issued inside the script that takes the lock, and is greater than every token issued before for that
 * lock. It is a hybrid clock: max(microseconds of Redis' clock, last token + 1, highest token the asking client has
 * seen + 1). One acquisition takes Redis more than a microsecond, so the counter never runs ahead of the clock, and a
 * Redis that lost everything (restarted empty, or a replica promoted before it had the last tokens) continues above
 * what was issued before. Its clock may even have stepped back by less than the pause, or by any amount as seen by a
 * client that lived through it. What is left is a Redis that is emptied while its clock is set back and that nobody
 * who held a lock before ever talks to again.
 *
 * Microseconds since 1970 stay below 2^53 until the year 2255, so a token is a safe integer in JavaScript, a double
 * in Lua and a BIGINT in SQL. The stored counter may therefore also expire (24 hours after its last use): names of
 * locks that nobody uses any more leave nothing behind.
 */
const nextToken = /* @__PURE__ */ loadScript(new URL('./next-token.lua', import.meta.url))

/** A script that may call `nextToken(key, seen)`. */
export function loadTokenScript(url: URL): RedisScript {
  const script = loadScript(url)
  return defineScript(script.name, nextToken.source + script.source)
}
