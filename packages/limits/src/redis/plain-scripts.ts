import { loadScript } from '@firebreak/redis'

/** Algorithms available as stand-alone Lua, for `redis-cli --eval` and other languages. */
export const plainScriptNames = ['token-bucket', 'leaky-bucket'] as const

/**
 * The text of a plain script with its arguments explained; undefined if there is none with this name. Both buckets
 * count alike and only differ in presentation: each file names its arguments and its output, and `bucket.lua` does the
 * rest.
 */
export function plainScript(name: string): string | undefined {
  const known = plainScriptNames.find((candidate) => candidate === name)
  return known === undefined ? undefined : read(known) + read('bucket')
}

function read(name: string): string {
  return loadScript(new URL(`./lua/plain/${name}.lua`, import.meta.url)).source
}
