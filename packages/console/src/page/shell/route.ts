import { signal } from '@preact/signals'

/** Where the page is: `#/rules` is the page `rules`; `#/key/main/user%253A1` is the page `key` with two parts. */
export interface Route {
  readonly page: string
  readonly parts: readonly string[]
}

export const route = signal(parseRoute(location.hash))

addEventListener('hashchange', () => {
  route.value = parseRoute(location.hash)
})

/** Reads the part of an address from `#` on. A part that is not percent-encoded text stands for itself. */
export function parseRoute(hash: string): Route {
  const [page, ...parts] = hash.replace(/^#\/?/, '').split('/')
  return { page: page || 'now', parts: parts.map(decoded) }
}

/** The address of one key's page; `key` is key text. */
export function keyAddress(redisClusterId: string, key: string): string {
  return `#/key/${encodeURIComponent(redisClusterId)}/${encodeURIComponent(key)}`
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
