import { isIPv6 } from 'node:net'
import type { Clock } from '../time/clock.ts'

export interface PasswordGuardOptions {
  readonly clock: Clock
  /** Wrong passwords allowed at once, from one address for one user. @default 10 */
  readonly burst?: number
  /** Further wrong passwords allowed per minute after that. @default 10 */
  readonly perMinute?: number
  /** Pairs of address and user that are remembered; beyond that the oldest is forgotten. @default 10000 */
  readonly maxPairs?: number
}

/**
 * Limits how fast passwords can be guessed on a port that accepts one with each connection.
 *
 * Only wrong ones count, by address and user together: applications behind the same address that know their passwords
 * keep working while somebody else there guesses. Once the guesses are used up, a password is refused without being
 * checked; otherwise a right one would show. Each pair is stored as one time, as in a leaky bucket: when all its wrong
 * passwords are forgotten.
 */
export class PasswordGuard {
  readonly #clock: Clock
  readonly #intervalMs: number
  readonly #mostMs: number
  readonly #maxPairs: number
  readonly #forgottenAt = new Map<string, number>()

  constructor({ clock, burst = 10, perMinute = 10, maxPairs = 10_000 }: PasswordGuardOptions) {
    this.#clock = clock
    this.#intervalMs = 60_000 / perMinute
    this.#mostMs = (burst - 1) * this.#intervalMs
    this.#maxPairs = maxPairs
  }

  /** How long until a password may be tried; 0: now. Pass the same name for every unknown user. */
  waitMs(address: string, user: string): number {
    const owedMs = (this.#forgottenAt.get(pairOf(address, user)) ?? 0) - this.#clock.now()
    return Math.max(0, owedMs - this.#mostMs)
  }

  /** Records a wrong password; true if it was the last one allowed for now. */
  failed(address: string, user: string): boolean {
    const pair = pairOf(address, user)
    const now = this.#clock.now()
    const at = Math.max(now, this.#forgottenAt.get(pair) ?? 0) + this.#intervalMs
    // Deleted first, so that the map is ordered by the latest failure.
    this.#forgottenAt.delete(pair)
    this.#forgottenAt.set(pair, at)
    if (this.#forgottenAt.size > this.#maxPairs) this.#forgottenAt.delete(this.#forgottenAt.keys().next().value!)
    return at - now > this.#mostMs
  }
}

function pairOf(address: string, user: string): string {
  return `${networkOf(address)} ${user}`
}

/** One customer has a whole /64 of IPv6. */
function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=[\d.]+$)/i, '').replace(/%.*$/, '')
  if (!isIPv6(plain)) return plain
  const [head = '', tail] = plain.split('::')
  const groups = head === '' ? [] : head.split(':')
  const given = groups.length + (tail === undefined || tail === '' ? 0 : tail.split(':').length)
  const filled = [...groups, ...Array.from({ length: Math.max(0, 8 - given) }, () => '0'), ...(tail ?? '').split(':')]
  return filled
    .slice(0, 4)
    .map((group) => group.toLowerCase().replace(/^0+(?=.)/, ''))
    .join(':')
}
