import type { ResolvedProxyOptions } from './options.ts'

/** The address that clients are given. */
export interface AnnouncedAddress {
  readonly host: string
  readonly port: number
}

const wildcards: ReadonlySet<string> = new Set(['0.0.0.0', '::', ''])

/**
 * The address that a client is given for the proxy. If the proxy listens on all addresses, it is the one that this
 * client reached: `local`, from its transport. A unix socket has no address: an empty one means that of the connection
 * itself.
 */
export function announcedPlace(
  { announce, host, path }: Pick<ResolvedProxyOptions, 'announce' | 'host' | 'path'>,
  port: number,
  local: string,
): AnnouncedAddress {
  if (announce !== undefined) return announce
  if (path !== undefined) return { host: '', port: 0 }
  if (!wildcards.has(host)) return { host, port }
  // An IPv4 client of an IPv6 socket only understands IPv4 notation.
  const reached = local.slice(0, local.lastIndexOf(':')).replace(/^\[(?:::ffff:(?=[\d.]+\]))?(.*)\]$/, '$1')
  return { host: reached, port }
}
