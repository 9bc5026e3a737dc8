import type { ResolvedProxyOptions } from './options.ts'

/** An address that clients are told. */
export interface AnnouncedAddress {
  readonly host: string
  readonly port: number
}

const wildcards: ReadonlySet<string> = new Set(['0.0.0.0', '::', ''])

/**
 * Where a client is told that the proxy is. One that listens on every address is where this client has reached it:
 * `local`, as its transport has it. On a unix socket there is no address: an empty one is that of the connection itself.
 */
export function announcedPlace(
  { announce, host, path }: Pick<ResolvedProxyOptions, 'announce' | 'host' | 'path'>,
  port: number,
  local: string,
): AnnouncedAddress {
  if (announce !== undefined) return announce
  if (path !== undefined) return { host: '', port: 0 }
  if (!wildcards.has(host)) return { host, port }
  // An IPv4 client of an IPv6 socket knows its own words only.
  const reached = local.slice(0, local.lastIndexOf(':')).replace(/^\[(?:::ffff:(?=[\d.]+\]))?(.*)\]$/, '$1')
  return { host: reached, port }
}
