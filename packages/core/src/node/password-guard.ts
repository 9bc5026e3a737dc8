import { isIPv6 } from 'node:net'
import type { Clock } from '../time/clock.ts'

export interface PasswordGuardOptions {
  readonly clock: Clock
  /** Wrong passwords from one address for one user that may come at once. @default 10 */
  readonly burst?: number
  /** And after those, in a minute. @default 10 */
  readonly perMinute?: number
  /** Pairs of address and user that are remembered; beyond it the oldest is forgotten. @default 10000 */
  readonly maxPairs?: number
}

/**
 * Limits how fast passwords can be guessed on a port that takes them with each connection.
 *
 * Only wrong ones count, by address and user together: applications behind one address that know their passwords, as
 * other users, go on while somebody beside them guesses. Who is out of guesses is refused before the password is looked
 * at, or a right one would show. Each pair is one time, as in a leaky bucket: when all its wrong passwords are forgotten.
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

  /** How long until a password may be tried; 0: now. A name that no user has should be the same one each time. */
  waitMs(address: string, user: string): number {
    const owedMs = (this.#forgottenAt.get(pairOf(address, user)) ?? 0) - this.#clock.now()
    return Math.max(0, owedMs - this.#mostMs)
  }

  /** A wrong password was shown; true if it was the last that may be tried for now. */
  failed(address: string, user: string): boolean {
    const pair = pairOf(address, user)
    const now = this.#clock.now()
    const at = Math.max(now, this.#forgottenAt.get(pair) ?? 0) + this.#intervalMs
    // Set anew, so that the order of the map is that of the last failures.
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
