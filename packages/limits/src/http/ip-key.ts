import { parseIp } from '../policy/ip-range.ts'

/**
 * The key for a client's address: IPv4 as it is (even if mapped into IPv6), IPv6 by its network, because one customer
 * has a whole network. `ipv6Prefix` is how many bits count.
 */
export function ipKey(address: string, ipv6Prefix = 64): string {
  const ip = parseIp(address)
  if (ip === undefined) return address
  if (ip.family === 4) return [24n, 16n, 8n, 0n].map((shift) => (ip.value >> shift) & 255n).join('.')
  const hostBits = BigInt(128 - ipv6Prefix)
  const network = (ip.value >> hostBits) << hostBits
  const groups = Array.from({ length: 8 }, (_, index) => ((network >> BigInt(112 - index * 16)) & 0xffffn).toString(16))
  return `${groups.join(':')}/${ipv6Prefix}`
}
