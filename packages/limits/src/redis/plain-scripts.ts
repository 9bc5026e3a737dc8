import { loadScript } from '@firebreak/redis'

/** Algorithms that can be had as Lua alone, for `redis-cli --eval` and other languages. */
export const plainScriptNames = ['token-bucket', 'leaky-bucket'] as const

/** The text of a plain script with its arguments explained; undefined where there is none of this name. */
export function plainScript(name: string): string | undefined {
  const known = plainScriptNames.find((candidate) => candidate === name)
  return known === undefined ? undefined : loadScript(new URL(`./lua/plain/${known}.lua`, import.meta.url)).source
}
