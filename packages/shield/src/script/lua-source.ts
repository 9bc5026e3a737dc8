import { readFileSync } from 'node:fs'

const sources = new Map<string, string>()

/** The text of a Lua file next to a module, read once: `luaSource(new URL('./put.lua', import.meta.url))`. */
export function luaSource(url: URL): string {
  let source = sources.get(url.href)
  if (source === undefined) {
    source = readFileSync(url, 'utf8')
    sources.set(url.href, source)
  }
  return source
}
