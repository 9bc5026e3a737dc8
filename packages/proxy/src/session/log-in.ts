import { createHmac } from 'node:crypto'
import type { Runtime } from '@firebreak/core'
import { PasswordGuard } from '@firebreak/core/node'
import type { ProxyLogger } from '../observe/proxy-logger.ts'
import type { Identity } from '../upstream/identity.ts'
import type { ProxyUsers } from './proxy-users.ts'

const wrongPassword = Buffer.from('-WRONGPASS invalid username-password pair or user is disabled.\r\n')
/** An unknown name may be a password in the wrong field. */
const unknownName = 'an unknown user'

/** A failed log-in and its answer. */
export interface Refusal {
  readonly reply: Buffer
}

/** Logs clients in as users of the proxy: limits and logs wrong passwords. */
export class LogIn {
  readonly #users: ProxyUsers
  readonly #guard: PasswordGuard
  readonly #logger: ProxyLogger
  readonly #seed: string
  /** Wrong passwords since the start. */
  failures = 0

  constructor(users: ProxyUsers, { clock, newId }: Pick<Runtime, 'clock' | 'newId'>, logger: ProxyLogger) {
    this.#users = users
    this.#guard = new PasswordGuard({ clock })
    this.#logger = logger
    this.#seed = newId()
  }

  /** The Redis identity of a user, or why there is none. `peer` is the client's address and port. */
  logIn(name: string, password: Uint8Array, peer: string): Identity | Refusal {
    const address = peer.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')
    const isKnown = this.#users.has(name)
    const counted = isKnown ? name : this.#unknown(name)
    const waitMs = this.#guard.waitMs(address, counted)
    if (waitMs > 0) {
      const seconds = Math.ceil(waitMs / 1000)
      const reply = Buffer.from(
        `-ERR too many wrong passwords for this user from your address: try again in ${seconds} s\r\n`,
      )
      return { reply }
    }
    const identity = this.#users.identify(name, password)
    if (identity !== undefined) return identity
    this.failures++
    const isLast = this.#guard.failed(address, counted)
    this.#logger.warn(
      { address, user: isKnown ? name : unknownName },
      isLast
        ? 'a client sent a wrong password; further attempts are refused for some seconds'
        : 'a client sent a wrong password',
    )
    return { reply: wrongPassword }
  }

  /**
   * The bucket, one of 256, that an unknown name is counted under: it is refused like a user's, so that nobody learns
   * which names exist, and many such names cannot evict the counts of real users.
   */
  #unknown(name: string): string {
    return `\0${createHmac('sha256', this.#seed).update(name).digest()[0]}`
  }
}

/** What a client's host needs of it. */
export type ClientLogIn = Pick<LogIn, 'logIn'>
