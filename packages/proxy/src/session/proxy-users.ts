import { createHash, timingSafeEqual } from 'node:crypto'
import { type Identity, identityOf, nobody } from '../upstream/identity.ts'

/** One of the proxy's own users, and its identity to Redis. */
export interface ProxyUserOptions {
  readonly name: string
  /** Without a password or certificates, anyone can log in as this user. */
  readonly password?: string
  /** Clients that present a certificate with one of these names are logged in as this user without a password. */
  readonly certificates?: readonly string[]
  /** The user at Redis. @default the upstream's own credentials */
  readonly upstreamUsername?: string
  readonly upstreamPassword?: string
}

interface KnownUser {
  readonly name: string
  readonly digest: Buffer | undefined
  /** Anyone can log in as this user. */
  readonly isOpen: boolean
  readonly identity: Identity
}

/** The users of a proxy that has its own. */
export class ProxyUsers {
  readonly #users = new Map<string, KnownUser>()
  readonly #byCertificate = new Map<string, KnownUser>()

  constructor(users: readonly ProxyUserOptions[], upstream: Identity) {
    for (const { name, password, certificates = [], upstreamUsername, upstreamPassword } of users) {
      const identity = upstreamPassword === undefined ? upstream : identityOf(upstreamUsername, upstreamPassword)
      const digest = password === undefined ? undefined : digestOf(password)
      const user = { name, digest, isOpen: password === undefined && certificates.length === 0, identity }
      this.#users.set(name, user)
      for (const certificate of certificates) this.#byCertificate.set(certificate, user)
    }
  }

  /** True if a client needs no password: there is a user `default` without one. */
  get isOpen(): boolean {
    return this.#users.get('default')?.isOpen === true
  }

  get openIdentity(): Identity {
    return this.#users.get('default')?.identity ?? nobody
  }

  has(name: string): boolean {
    return this.#users.has(name)
  }

  /** The Redis identity of a user who supplies a password, or undefined. */
  identify(name: string, password: Uint8Array): Identity | undefined {
    const user = this.#users.get(name)
    // Compared even if there is no such user, so that timing reveals nothing.
    const isEqual = timingSafeEqual(digestOf(password), user?.digest ?? noDigest)
    if (user === undefined) return undefined
    return user.isOpen || (user.digest !== undefined && isEqual) ? user.identity : undefined
  }

  /**
   * The user of a client that presented a certificate with these names; the first name that belongs to a user counts.
   */
  ofCertificate(names: readonly string[]): Pick<KnownUser, 'name' | 'identity'> | undefined {
    return names.map((name) => this.#byCertificate.get(name)).find((user) => user !== undefined)
  }
}

const noDigest = Buffer.alloc(32)

function digestOf(password: string | Uint8Array): Buffer {
  return createHash('sha256').update(password).digest()
}
