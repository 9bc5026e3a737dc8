import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { InvalidOptionError } from '@firebreak/core'

/** A node's address: its name among the workers, and where peers query its time. */
export interface NodeAddress {
  readonly ip: string
  readonly port: number
}

/** `ip:port`, as in the names of a registry. */
export function formatAddress({ ip, port }: NodeAddress): string {
  return isIP(ip) === 6 ? `[${ip}]:${port}` : `${ip}:${port}`
}

/** Parses `ip:port`; undefined if it is not valid. */
export function parseAddress(text: string): NodeAddress | undefined {
  const match = text.match(/^(?:\[([0-9a-fA-F:.%\w]+)\]|([^:/\s[\]]+)):(\d{1,5})$/)
  const port = Number(match?.[3])
  if (match === null || port > 65_535) return undefined
  return { ip: (match[1] ?? match[2])!, port }
}

/** Throws unless the address can name a node. */
export function checkAddress(address: NodeAddress): NodeAddress {
  const isPort = Number.isInteger(address.port) && address.port > 0 && address.port < 65_536
  if (isPort && parseAddress(formatAddress(address)) !== undefined) return address
  throw new InvalidOptionError('address', formatAddress(address), 'an ip (or host name) and a port from 1 to 65535')
}

/** This machine's first address that others can reach, or loopback if it has none. */
export function ownIp(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  const outside = addresses.filter(({ internal }) => !internal)
  return (outside.find(({ family }) => family === 'IPv4') ?? outside[0])?.address ?? '127.0.0.1'
}
