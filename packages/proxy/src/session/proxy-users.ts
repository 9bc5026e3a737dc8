import { createHash, timingSafeEqual } from 'node:crypto'
import { type Identity, identityOf, nobody } from '../upstream/identity.ts'

/** A user of the proxy's own, and who it is to Redis. */
export interface ProxyUserOptions {
  readonly name: string
  /** Without one, anybody is this user who says so. */
  readonly password?: string
  /** The user to Redis. @default the upstream's own credentials */
  readonly upstreamUsername?: string
  readonly upstreamPassword?: string
}

/** The users of a proxy that keeps its own. */
export class ProxyUsers {
  readonly #users = new Map<string, { readonly digest: Buffer | undefined; readonly identity: Identity }>()

  constructor(users: readonly ProxyUserOptions[], upstream: Identity) {
    for (const { name, password, upstreamUsername, upstreamPassword } of users) {
      const own = upstreamPassword === undefined ? upstream : identityOf(upstreamUsername, upstreamPassword)
      this.#users.set(name, { digest: password === undefined ? undefined : digestOf(password), identity: own })
    }
  }

  /** True where a client needs no password: there is a user `default` without one. */
  get isOpen(): boolean {
    const user = this.#users.get('default')
    return user !== undefined && user.digest === undefined
  }

  get openIdentity(): Identity {
    return this.#users.get('default')?.identity ?? nobody
  }

  /** The identity to Redis of a user who shows a password, or undefined. */
  identify(name: string, password: Uint8Array): Identity | undefined {
    const user = this.#users.get(name)
    // Compared also where there is no such user, so that the time does not tell.
    const isEqual = timingSafeEqual(digestOf(password), user?.digest ?? noDigest)
    if (user === undefined) return undefined
    return user.digest === undefined || isEqual ? user.identity : undefined
  }
}

/** What a client host needs of the users. */
export type ProxyUser = Pick<ProxyUsers, 'identify'>

const noDigest = Buffer.alloc(32)

function digestOf(password: string | Uint8Array): Buffer {
  return createHash('sha256').update(password).digest()
}
