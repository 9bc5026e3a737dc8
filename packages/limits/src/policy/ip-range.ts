import { isIPv4, isIPv6 } from 'node:net'

/** An address as a number, with its family: IPv4 and IPv6 never match each other, mapped ones count as IPv4. */
export interface IpAddress {
  readonly family: 4 | 6
  readonly value: bigint
}

/** Addresses from `low` to `high`, both included. */
export interface IpRange {
  readonly family: 4 | 6
  readonly low: bigint
  readonly high: bigint
}

/** Parses an address; undefined where it is none. */
export function parseIp(text: string): IpAddress | undefined {
  if (isIPv4(text)) return { family: 4, value: ipv4Value(text) }
  if (!isIPv6(text)) return undefined
  const bare = text.split('%', 1)[0]!
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare)
  if (mapped !== null) return { family: 4, value: ipv4Value(mapped[1]!) }
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(bare)
  let hex = bare
  if (dotted !== null) {
    const low = ipv4Value(dotted[2]!)
    hex = `${dotted[1]}${(low >> 16n).toString(16)}:${(low & 0xffffn).toString(16)}`
  }
  const [head = '', tail] = hex.split('::')
  const groups = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : 8 - groups.length - after.length
  let value = 0n
  for (const group of [...groups, ...Array.from({ length: zeros }, () => '0'), ...after]) {
    value = (value << 16n) | BigInt(`0x${group}`)
  }
  return { family: 6, value }
}

let lastText = ''
let lastAddress: IpAddress | undefined

/** The same, remembering the last one: the rules of a policy all look at one call's address. */
export function parseIpAgain(text: string): IpAddress | undefined {
  if (text !== lastText) {
    lastAddress = parseIp(text)
    lastText = text
  }
  return lastAddress
}

function ipv4Value(text: string): bigint {
  return text.split('.').reduce((sum, part) => (sum << 8n) | BigInt(part), 0n)
}

/** `10.0.24.*`, `10.0.0.0/8`, `2001:db8::/32`, `10.0.0.1-10.0.0.9` or one IPv6 address; undefined where it is none. */
export function parseIpRange(text: string): IpRange | undefined {
  if (/^[\d.*]+$/.test(text) && text.includes('*')) {
    const low = parseIp(text.replaceAll('*', '0'))
    const high = parseIp(text.replaceAll('*', '255'))
    return low && high ? { family: 4, low: low.value, high: high.value } : undefined
  }
  const slash = /^(.+)\/(\d{1,3})$/.exec(text)
  if (slash !== null) {
    const base = parseIp(slash[1]!)
    const bits = Number(slash[2])
    if (base === undefined || bits > (base.family === 4 ? 32 : 128)) return undefined
    const hostBits = BigInt((base.family === 4 ? 32 : 128) - bits)
    const low = (base.value >> hostBits) << hostBits
    return { family: base.family, low, high: low | ((1n << hostBits) - 1n) }
  }
  const dash = text.split('-')
  if (dash.length === 2) {
    const low = parseIp(dash[0]!.trim())
    const high = parseIp(dash[1]!.trim())
    if (low === undefined || high === undefined || low.family !== high.family) return undefined
    return { family: low.family, low: low.value, high: high.value }
  }
  const single = isIPv6(text) ? parseIp(text) : undefined
  return single && { family: single.family, low: single.value, high: single.value }
}
