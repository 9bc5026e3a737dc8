import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { FirebreakError } from '@firebreak/core'

/** A Lua script and the digest that servers know it by. */
export interface RedisScript {
  readonly name: string
  readonly source: string
  readonly sha1: string
}

/** Loads a script from a file next to the module: `loadScript(new URL('./take.lua', import.meta.url))`. */
export function loadScript(url: URL): RedisScript {
  let source: string
  try {
    source = readFileSync(url, 'utf8')
  } catch (cause) {
    throw new FirebreakError(
      'FB_SCRIPT_MISSING',
      `the script ${url.pathname.split('/').pop()} is missing next to its module`,
      { cause },
    )
  }
  return defineScript(
    url.pathname
      .split('/')
      .pop()!
      .replace(/\.lua$/, ''),
    source,
  )
}

/** Makes a script from its text. */
export function defineScript(name: string, source: string): RedisScript {
  return { name, source, sha1: createHash('sha1').update(source).digest('hex') }
}
