import { signal } from '@preact/signals'

/**
 * Where the page is, all of it in the address, so that a colleague opens what I see: `#/keys?sort=writes` is the page
 * `keys` with one setting; `#/key/main/user%253A1` is the page `key` with two parts.
 */
export interface Route {
  readonly page: string
  readonly parts: readonly string[]
  readonly query: Readonly<Record<string, string>>
}

export const route = signal(parseRoute(location.hash))

for (const event of ['hashchange', 'popstate']) {
  addEventListener(event, () => {
    route.value = parseRoute(location.hash)
  })
}

/** Reads the part of an address from `#` on. A part that is not percent-encoded text stands for itself. */
export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s)
  const [page, ...parts] = path.split('/')
  return {
    page: page || 'overview',
    parts: parts.map(decoded),
    query: Object.fromEntries(new URLSearchParams(query)),
  }
}

/** The address of a page with these settings; empty ones are left out. */
export function addressOf({ page, parts, query }: Route): string {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== '')).toString()
  const path = [page, ...parts.map(encodeURIComponent)].join('/')
  return `#/${path}${search === '' ? '' : `?${search}`}`
}

/** Changes settings of the page that is open; an empty value takes one away. With `isStep` Back undoes it. */
export function setQuery(changes: Readonly<Record<string, string>>, isStep = false): void {
  const next = { ...route.peek(), query: { ...route.peek().query, ...changes } }
  if (isStep) history.pushState(null, '', addressOf(next))
  else history.replaceState(null, '', addressOf(next))
  route.value = parseRoute(location.hash)
}

/** Opens an address of this page. */
export function open(address: string): void {
  location.hash = address
}

/** The address of one key's page; `key` is key text. */
export function keyAddress(redisClusterId: string, key: string): string {
  return addressOf({ page: 'key', parts: [redisClusterId, key], query: {} })
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
