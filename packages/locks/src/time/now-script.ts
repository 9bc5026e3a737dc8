import { defineScript, loadScript, type RedisScript } from '@firebreak/redis'

const nowFunctions = /* @__PURE__ */ loadScript(new URL('./now.lua', import.meta.url))

/** A script that may use `now`, the milliseconds of Redis' clock; `reader` loads it. */
export function loadTimedScript(url: URL, reader: (url: URL) => RedisScript = loadScript): RedisScript {
  const script = reader(url)
  return defineScript(script.name, nowFunctions.source + script.source)
}
