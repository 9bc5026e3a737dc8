import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { ApiProblem } from '../errors.ts'

/** What people may do: a viewer looks, an operator throws the switch and changes rules, an admin also sees tokens. */
export type Role = 'viewer' | 'operator' | 'admin'

const rank: Record<Role, number> = { viewer: 1, operator: 2, admin: 3 }

/** Secrets that open the hub: one per application, and one per person with a role. */
export interface HubTokens {
  readonly apps: readonly { readonly name: string; readonly token: string }[]
  readonly people: readonly { readonly name: string; readonly role: Role; readonly token: string }[]
}

/** Who is asking. */
export interface Caller {
  /** For the audit log. */
  readonly who: string
  /** Undefined: a sensor. */
  readonly role: Role | undefined
}

export interface AccessGuardOptions {
  readonly tokens: HubTokens | undefined
  /** Names beside loopback and the machine's own addresses by which browsers may reach the hub. */
  readonly allowedHosts: readonly string[]
}

/**
 * Decides who may ask for what.
 *
 * - *Host*: only loopback names, this machine's addresses and the allowed names. A page that was loaded from a name which
 *   then points to 127.0.0.1 (DNS rebinding) still says its own name here.
 * - *Origin*: where a browser sends one, it must be the very host that is asked. Requests without an Origin come from
 *   programs, or are plain GETs of a page, which cannot read the answer across sites.
 * - *Token*: without tokens (loopback only) everybody on this machine may do everything; with tokens nobody without one.
 */
export class AccessGuard {
  readonly #hosts: ReadonlySet<string>
  readonly #apps: readonly { readonly name: string; readonly digest: Buffer }[] | undefined
  #lastOwn: string | undefined
  readonly #people: readonly { readonly name: string; readonly role: Role; readonly digest: Buffer }[]

  constructor({ tokens, allowedHosts }: AccessGuardOptions) {
    const own = Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address) ?? [])
    this.#hosts = new Set(['localhost', '::1', ...own, ...allowedHosts].map((host) => host.toLowerCase()))
    this.#apps = tokens?.apps.map(({ name, token }) => ({ name, digest: digestOf(token) }))
    this.#people = tokens?.people.map(({ name, role, token }) => ({ name, role, digest: digestOf(token) })) ?? []
  }

  get hasTokens(): boolean {
    return this.#apps !== undefined
  }

  /** Refuses what another site may have made a browser send. */
  checkOrigin(headers: IncomingHttpHeaders): void {
    if (!this.isOwnHost(headers.host)) {
      throw new ApiProblem(
        403,
        'FB_HOST_REFUSED',
        `requests for the host ${JSON.stringify(headers.host ?? '')} are refused; use a loopback name, or add it to allowedHosts`,
        'Host',
      )
    }
    this.checkSite(headers)
  }

  /** Refuses what a page of another site made a browser send. */
  checkSite(headers: IncomingHttpHeaders): void {
    const { origin } = headers
    const isForeign = origin !== undefined && !isSameHost(origin, headers.host)
    if (isForeign || headers['sec-fetch-site'] === 'cross-site') {
      const from = origin === undefined ? 'another site' : JSON.stringify(origin)
      throw new ApiProblem(403, 'FB_ORIGIN_REFUSED', `requests of pages from ${from} are refused`, 'Origin')
    }
  }

  /** The caller, if he may act as `role`. */
  authorize(token: string | undefined, role: Role): Caller {
    if (!this.hasTokens) return { who: 'local', role: 'admin' }
    const digest = token === undefined ? undefined : digestOf(token)
    const person = digest && this.#people.find((candidate) => timingSafeEqual(candidate.digest, digest))
    if (person === undefined) {
      throw new ApiProblem(
        401,
        'FB_TOKEN_REFUSED',
        'this needs a token: send Authorization: Bearer TOKEN',
        'Authorization',
      )
    }
    if (rank[person.role] < rank[role]) {
      throw new ApiProblem(403, 'FB_ROLE_REFUSED', `${person.name} is ${person.role}; this needs the role ${role}`)
    }
    return { who: person.name, role: person.role }
  }

  /** The application's name; undefined where the token is nobody's. */
  appOf(token: string | undefined): string | undefined {
    if (this.#apps === undefined) return 'local'
    if (token === undefined) return undefined
    const digest = digestOf(token)
    return this.#apps.find((app) => timingSafeEqual(app.digest, digest))?.name
  }

  /** Names and roles without the secrets. */
  listed(): { readonly apps: readonly string[]; readonly people: readonly { name: string; role: Role }[] } {
    return {
      apps: this.#apps?.map(({ name }) => name) ?? [],
      people: this.#people.map(({ name, role }) => ({ name, role })),
    }
  }

  /** True where a Host header names this machine. */
  isOwnHost(header: string | undefined): boolean {
    // A client asks for the same host every time.
    if (header !== undefined && header === this.#lastOwn) return true
    const host = hostName(header)
    const isOwn = host !== undefined && (this.#hosts.has(host) || (isIP(host) === 4 && host.startsWith('127.')))
    if (isOwn) this.#lastOwn = header
    return isOwn
  }
}

/** The token of a request: a bearer, or for a browser's WebSocket (which can set no header) a subprotocol. */
export function tokenOf(headers: IncomingHttpHeaders): string | undefined {
  const bearer = headers.authorization?.match(/^Bearer (\S+)$/i)?.[1]
  if (bearer !== undefined) return bearer
  const protocols = headers['sec-websocket-protocol']?.split(',') ?? []
  const name = protocols
    .map((protocol) => protocol.trim().match(/^firebreak-token\.(\S+)$/)?.[1])
    .find((token) => token !== undefined)
  return name === undefined ? undefined : decoded(name)
}

/** A subprotocol has few characters: the others of a token are percent-encoded. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/** The name without port and brackets, in lower case. */
function hostName(host: string | undefined): string | undefined {
  const match = host?.toLowerCase().match(/^(?:\[([0-9a-f:.]+)\]|([^:[\]]+))(?::\d+)?$/)
  return match?.[1] ?? match?.[2]
}

function isSameHost(origin: string, host: string | undefined): boolean {
  try {
    return new URL(origin).host === new URL(`http://${host}`).host || new URL(origin).host === host?.toLowerCase()
  } catch {
    return false
  }
}
