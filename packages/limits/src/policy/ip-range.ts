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

/** Parses an address; undefined if it is not one. */
export function parseIp(text: string): IpAddress | undefined {
  if (isIPv4(text)) return { family: 4, value: ipv4Value(text) }
  const value = ipv6Value(text)
  if (value === undefined) return undefined
  return isMapped(value) ? { family: 4, value: value & 0xffff_ffffn } : { family: 6, value }
}

/** `::ffff:10.0.0.1` in any spelling, including `::ffff:a00:1`: how a dual-stack socket shows an IPv4 peer. */
function isMapped(value: bigint): boolean {
  return value >> 32n === 0xffffn
}

function ipv6Value(text: string): bigint | undefined {
  if (!isIPv6(text)) return undefined
  const bare = text.split('%', 1)[0]!
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
  return value
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

/**
 * `10.0.24.*`, `10.0.0.0/8`, `2001:db8::/32`, `10.0.0.1-10.0.0.9` or one address; undefined if it is something else.
 * Throws a message for a malformed text that can only mean addresses: loaded as plain text it would match nobody.
 */
export function parseIpRange(text: string): IpRange | undefined {
  if (/^[\d.*]+$/.test(text) && text.includes('*') && text.includes('.')) return wildcardRange(text)
  const [base = '', mask, ...more] = text.split('/')
  if (mask !== undefined && (looksLikeIp(base) || /^\d+(\.\d+)+\.?$/.test(base))) {
    if (more.length > 0) throw new Error(`"${text}" has two masks`)
    return maskedRange(text, base, mask)
  }
  const ends = text.split('-').map((end) => end.trim())
  if (ends.length > 1 && ends.every(isOfAddresses) && ends.some(looksLikeIp)) return betweenRange(text, ends)
  const single = parseIp(text)
  if (single !== undefined) return { family: single.family, low: single.value, high: single.value }
  if (/^\d{1,3}(\.\d{1,3}){3}$/.test(text)) {
    throw new Error(`"${text}" is not an IPv4 address: write four numbers from 0 to 255 without leading zeros`)
  }
  if (looksLikeIp(text) && (text.includes('::') || text.split(':').length > 8)) {
    throw new Error(`"${text}" is not an IPv6 address`)
  }
  return undefined
}

/** Four numbers with dots, or hexadecimal groups with colons, well formed or not. */
function looksLikeIp(text: string): boolean {
  return /^\d+(\.\d+){3,}$/.test(text) || /^[\da-f]*:[\da-f]*:[\da-f:.]*(%.*)?$/i.test(text)
}

/** Only the characters that addresses consist of. */
function isOfAddresses(text: string): boolean {
  return /^[\d.]*$/.test(text) || looksLikeIp(text)
}

function wildcardRange(text: string): IpRange {
  const low = parseIp(text.replaceAll('*', '0'))
  const high = parseIp(text.replaceAll('*', '255'))
  if (low === undefined || high === undefined || !/^[\d.]*\*(\.\*)*$/.test(text)) {
    throw new Error(`"${text}" is not an address range; stars replace the last of four numbers, as in 10.0.24.*`)
  }
  return { family: 4, low: low.value, high: high.value }
}

function maskedRange(text: string, base: string, mask: string): IpRange {
  const isV4 = isIPv4(base)
  const value = isV4 ? ipv4Value(base) : ipv6Value(base)
  if (value === undefined) throw new Error(`"${text}": ${base} is not an address`)
  const width = isV4 ? 32 : 128
  if (!/^\d{1,3}$/.test(mask) || Number(mask) > width) {
    throw new Error(`"${text}": /${mask} is not a mask; use a number from 0 to ${width}`)
  }
  const hostBits = BigInt(width - Number(mask))
  const low = (value >> hostBits) << hostBits
  const high = low | ((1n << hostBits) - 1n)
  if (isV4) return { family: 4, low, high }
  if (isMapped(low) && isMapped(high)) return { family: 4, low: low & 0xffff_ffffn, high: high & 0xffff_ffffn }
  return { family: 6, low, high }
}

function betweenRange(text: string, ends: readonly string[]): IpRange {
  if (ends.length > 2) throw new Error(`"${text}" has more than two ends`)
  const [low, high] = ends.map((end) => {
    const address = parseIp(end)
    if (address === undefined) throw new Error(`"${text}": ${end || 'nothing'} is not an address`)
    return address
  })
  if (low!.family !== high!.family) throw new Error(`"${text}" goes from IPv${low!.family} to IPv${high!.family}`)
  if (low!.value > high!.value) throw new Error(`"${text}" ends before it begins; the lower address comes first`)
  return { family: low!.family, low: low!.value, high: high!.value }
}
