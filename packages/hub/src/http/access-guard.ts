import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { TLSSocket } from 'node:tls'
import { certificateNames } from '@firebreak/core/node'
import { type AppGrant, anyApp, type Role } from '../access/credential.ts'
import type { CredentialBook, PersonGrant } from '../access/credential-book.ts'
import { isCsrf, type PeopleSession, type PeopleSessions } from '../access/people-sessions.ts'
import { ApiProblem } from '../errors.ts'

const rank: Record<Role, number> = { viewer: 1, operator: 2, admin: 3 }

/** Who is asking. */
export interface Caller {
  /** For the audit log. */
  readonly who: string
  /** Undefined: a sensor. */
  readonly role: Role | undefined
  /** What a sensor may report. */
  readonly app?: AppGrant
  /** False once the caller's credential is no longer accepted. */
  readonly isValid: () => boolean
}

/** A proxy in front of the hub that signs users in (by OpenID Connect, say) and passes the user in a header. */
export interface UserHeader {
  /** In lower case: `x-forwarded-email`, `x-auth-request-user` …. */
  readonly name: string
  /** The proxy's addresses: the header is ignored from any other. */
  readonly from: readonly string[]
  /** The role of users without their own entry; undefined: they are refused. */
  readonly role: Role | undefined
}

export interface AccessGuardOptions {
  /** Undefined: everyone on this machine may do everything. */
  readonly tokens?: CredentialBook | undefined
  readonly sessions?: PeopleSessions
  readonly userHeader?: UserHeader | undefined
  /** Names, besides loopback and the machine's own addresses, under which browsers may reach the hub. */
  readonly allowedHosts: readonly string[]
}

const storeUnheard = 'the store, which may contain tokens, has not answered since this hub started'
const csrfHeader = 'firebreak-csrf'

/**
 * Decides who may request what.
 *
 * - *Host*: only loopback names, this machine's addresses and the allowed names. A page that was loaded from a name which
 *   then points to 127.0.0.1 (DNS rebinding) still says its own name here. Programs that show a token may use any name, where
 *   there are tokens: such a page has none.
 * - *Origin*: where a browser sends one, it must be the very host that is asked. Without one, as in a plain GET of a page,
 *   `Sec-Fetch-Site` says whose page it was: another port of the same machine is the same site and yet a stranger. Only a
 *   page of the console may be gone to from elsewhere: a link in a chat, or the way back from where people sign in.
 *   Requests with neither come from programs.
 * - *Who*: a token, a client certificate, a session's cookie, or the header of a proxy that signs people in. Without any
 *   credential (loopback only) everybody on this machine may do everything; with one nobody without.
 * - *CSRF*: what a browser sends by itself, the cookie and the proxy's header, is no will to change something; a change also
 *   needs the session's own value in a header, which only our page can read.
 */
export class AccessGuard {
  readonly #hosts: ReadonlySet<string>
  readonly #options: AccessGuardOptions
  #lastOwn: string | undefined

  constructor(options: AccessGuardOptions) {
    this.#options = options
    const own = Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address) ?? [])
    this.#hosts = new Set(['localhost', '::1', ...own, ...options.allowedHosts].map((host) => host.toLowerCase()))
  }

  get hasTokens(): boolean {
    return this.#options.tokens?.isLocked === true
  }

  /** Refuses what another site may have made a browser send; `isPage` if a page of the console is requested. */
  checkOrigin(headers: IncomingHttpHeaders): void {
    if (!this.isOwnHost(headers.host)) throw hostRefused(headers)
    this.checkSite(headers)
  }

  /**
   * The same, except that programs with a credential may use any name, because a page of another site has none. The
   * name matters for browsers, and if there are no tokens. `kind`: a console page may be opened from elsewhere; a probe
   * learns nothing secret; a sensor sends its token in its hello.
   */
  checkCall(request: IncomingMessage, kind?: 'page' | 'probe' | 'sensor'): void {
    const { headers } = request
    if (!this.isOwnHost(headers.host) && kind !== 'probe' && !this.#isProgram(request, kind === 'sensor'))
      throw hostRefused(headers)
    if (kind !== 'page' || !isNavigation(headers)) this.checkSite(headers)
  }

  /** A caller with its own token; cookies, and headers that browsers add, are not those of a program. */
  #isProgram(request: IncomingMessage, isSensor: boolean): boolean {
    if (!this.hasTokens) return false
    const { origin, cookie, 'sec-fetch-site': site } = request.headers
    const isBrowser = (origin ?? site ?? cookie) !== undefined
    if (!isBrowser && (isSensor || tokenOf(request.headers) !== undefined)) return true
    return this.#isKnown(request)
  }

  /** Whether the request carries a token or certificate that is accepted now. */
  #isKnown(request: IncomingMessage): boolean {
    const { tokens } = this.#options
    const [token, names] = [tokenOf(request.headers), namesShown(request)]
    return tokens?.person(token, names) !== undefined || tokens?.app(token, names) !== undefined
  }

  /**
   * What the caller may learn about the hub's problems; without tokens everyone on this machine may learn everything.
   */
  troubleFor(request: IncomingMessage, cause: string): string {
    if (this.hasTokens ? this.#person(request) !== undefined : this.#isOpenTo(request.headers)) return cause
    return this.#isUnheard ? storeUnheard : 'an alarm; its cause is shown with a token'
  }

  /** True while there may be tokens that the hub has not loaded yet. */
  get #isUnheard(): boolean {
    return !this.hasTokens && this.#options.tokens?.isKnown === false
  }

  #isOpenTo({ host }: IncomingHttpHeaders): boolean {
    return this.isOwnHost(host) && !this.#isUnheard
  }

  /** Refuses what a page of another site made a browser send. */
  checkSite(headers: IncomingHttpHeaders): void {
    const { origin } = headers
    const isForeign = origin !== undefined && !isSameHost(origin, headers.host)
    const site = headers['sec-fetch-site']
    if (isForeign || site === 'cross-site' || site === 'same-site') {
      const from = origin === undefined ? 'another site or port' : JSON.stringify(origin)
      throw new ApiProblem(403, 'FB_ORIGIN_REFUSED', `requests of pages from ${from} are refused`, 'Origin')
    }
  }

  /** The caller, if it may act as `role`. */
  authorize(request: IncomingMessage, role: Role): Caller {
    if (!this.hasTokens) {
      // Otherwise anyone could do everything by waiting for the store to be unreachable.
      if (this.#isUnheard) throw new ApiProblem(503, 'FB_STORE_AWAY', `${storeUnheard}; use a token from a tokens file`)
      return { who: 'local', role: 'admin', isValid: () => !this.hasTokens }
    }
    const person = this.#person(request)
    if (person === undefined) throw this.tokenProblem(request, 'person')
    const { caller, csrf } = person
    if (rank[caller.role!] < rank[role]) {
      throw new ApiProblem(403, 'FB_ROLE_REFUSED', `${caller.who} is ${caller.role}; this needs the role ${role}`)
    }
    const changes = request.method !== 'GET' && request.method !== 'HEAD'
    if (changes && csrf !== undefined && !isCsrf(request.headers[csrfHeader], csrf)) {
      const message = `a change from a browser needs the header ${csrfHeader}, with the value that GET /v1/session gives`
      throw new ApiProblem(403, 'FB_CSRF_REFUSED', message, csrfHeader)
    }
    return caller
  }

  /** The app of a call that is for apps. */
  authorizeApp(request: IncomingMessage): Caller {
    // Otherwise anyone who waits for the store to be unreachable could report.
    if (this.#isUnheard) throw new ApiProblem(503, 'FB_STORE_AWAY', `${storeUnheard}; use a token from a tokens file`)
    const app = this.appOf(request)
    if (app !== undefined) return { who: app.name, role: undefined, app, isValid: app.isValid }
    throw this.tokenProblem(request, 'app')
  }

  /** Why a caller without a grant is refused: it has shown no token, or one that is not accepted here. */
  tokenProblem(request: IncomingMessage, wanted: 'person' | 'app', token = tokenOf(request.headers)): ApiProblem {
    const names = namesShown(request)
    if (token === undefined && names.length === 0) {
      const other = request.headers.authorization
      const message =
        other !== undefined
          ? 'the Authorization header is not "Bearer TOKEN": send the token in this form'
          : wanted === 'app'
            ? 'this needs an app token: send Authorization: Bearer TOKEN (a sensor: set its option token)'
            : 'this needs a token: sign in, or send Authorization: Bearer TOKEN'
      return new ApiProblem(401, 'FB_TOKEN_MISSING', message, 'Authorization')
    }
    const shown = token === undefined ? 'the client certificate' : 'the token'
    const { tokens } = this.#options
    const isOther = wanted === 'app' ? tokens?.person(token, names) : tokens?.app(token, names)
    const message =
      isOther === undefined
        ? `${shown} is not known here: it is wrong, was revoked or has expired; use another`
        : wanted === 'app'
          ? `${shown} is a person's; this needs that of an app (firebreak token create --app NAME)`
          : `${shown} is an app's; this needs that of a person`
    return new ApiProblem(401, 'FB_TOKEN_REFUSED', message, 'Authorization')
  }

  /**
   * What a sensor may report; undefined if its token, in the request or its hello, is unknown. While there may be
   * tokens that the hub has not heard of, it is let in only to hear of the switch.
   */
  appOf(request: IncomingMessage, token = tokenOf(request.headers)): AppGrant | undefined {
    if (!this.hasTokens) return { ...anyApp, isValid: () => !this.hasTokens }
    return this.#options.tokens!.app(token, namesShown(request))
  }

  /** Await this before judging a caller: another hub may have begun its session a moment ago. */
  async learn({ cookie }: IncomingHttpHeaders): Promise<void> {
    if (cookie !== undefined && this.hasTokens) await this.#options.sessions?.learn(cookie)
  }

  /** The session of a browser. */
  sessionOf({ headers }: IncomingMessage): PeopleSession | undefined {
    return this.#options.sessions?.find(headers.cookie)
  }

  /** The CSRF value that this caller's changes must carry; undefined if nothing identifies it automatically. */
  csrfOf(request: IncomingMessage): string | undefined {
    return this.hasTokens ? this.#person(request)?.csrf : undefined
  }

  #person(request: IncomingMessage): { readonly caller: Caller; readonly csrf?: string } | undefined {
    const token = tokenOf(request.headers)
    const grant = this.#options.tokens!.person(token, namesShown(request))
    if (grant !== undefined) {
      // A browser sends a certificate automatically, like a cookie; a program has no page that could trigger it.
      const { origin, 'sec-fetch-site': site } = request.headers
      const isByItself = !grant.proof.startsWith('token ') && (origin ?? site) !== undefined
      return { caller: callerOf(grant), ...(isByItself && { csrf: this.#csrfOfName(grant.credential.name) }) }
    }
    if (token !== undefined) return undefined
    const session = this.sessionOf(request)
    if (session !== undefined) return { caller: callerOf(session.grant), csrf: session.csrf }
    return this.#userOfProxy(request)
  }

  #userOfProxy({
    headersDistinct,
    socket,
  }: IncomingMessage): { readonly caller: Caller; readonly csrf: string } | undefined {
    const { userHeader, tokens } = this.#options
    if (userHeader === undefined) return undefined
    const address = socket.remoteAddress?.replace(/^::ffff:/, '')
    // Of two the first may be the client's own.
    const [given, ...others] = headersDistinct[userHeader.name] ?? []
    if (address === undefined || !userHeader.from.includes(address)) return undefined
    if (given === undefined || others.length > 0) return undefined
    const who = given.slice(0, 256)
    const roleNow = () => tokens!.personByName(who)?.role ?? userHeader.role
    const role = roleNow()
    if (who === '' || role === undefined) return undefined
    return { caller: { who, role, isValid: () => roleNow() === role }, csrf: this.#csrfOfName(who) }
  }

  #csrfOfName(name: string): string {
    return this.#options.sessions!.csrfOfName(name)
  }

  /** True if a Host header names this machine. */
  isOwnHost(header: string | undefined): boolean {
    // A client requests the same host every time.
    if (header !== undefined && header === this.#lastOwn) return true
    const host = hostName(header)
    const isOwn = host !== undefined && (this.#hosts.has(host) || (isIP(host) === 4 && host.startsWith('127.')))
    if (isOwn) this.#lastOwn = header
    return isOwn
  }
}

function hostRefused({ host = '' }: IncomingHttpHeaders): ApiProblem {
  const message = `requests for the host ${JSON.stringify(host)} are refused: a program must show a token, a browser needs the name in allowedHosts (--allowed-hosts); or use a loopback name`
  return new ApiProblem(403, 'FB_HOST_REFUSED', message, 'Host')
}

function callerOf({ credential, isValid }: PersonGrant): Caller {
  return { who: credential.name, role: credential.role, isValid }
}

/** The token of a request: a bearer, or for a browser's WebSocket (which cannot set headers) a subprotocol. */
export function tokenOf(headers: IncomingHttpHeaders): string | undefined {
  const bearer = headers.authorization?.match(/^Bearer (\S+)$/i)?.[1]
  if (bearer !== undefined) return bearer
  const protocols = headers['sec-websocket-protocol']?.split(',') ?? []
  const name = protocols
    .map((protocol) => protocol.trim().match(/^firebreak-token\.(\S+)$/)?.[1])
    .find((token) => token !== undefined)
  return name === undefined ? undefined : decoded(name)
}

/** The names in a client certificate signed by our authority; none without such a certificate. */
function namesShown({ socket }: IncomingMessage): string[] {
  return socket instanceof TLSSocket && socket.authorized ? certificateNames(socket.getPeerCertificate()) : []
}

/** A subprotocol allows few characters: the others in a token are percent-encoded. */
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

/** A person navigates to a page, as opposed to another page embedding or fetching it. */
function isNavigation({ origin, ...headers }: IncomingHttpHeaders): boolean {
  return origin === undefined && headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document'
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
