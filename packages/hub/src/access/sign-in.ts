import type { Runtime } from '@firebreak/core'
import { ipKey, LocalLimiter, slidingWindow } from '@firebreak/limits'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { ApiProblem } from '../errors.ts'
import type { AccessGuard } from '../http/access-guard.ts'
import type { HubLogger } from '../hub-options.ts'
import type { CredentialBook, PersonGrant } from './credential-book.ts'
import type { PeopleSessions } from './people-sessions.ts'
import { digestOf, isPassword } from './secrets.ts'

export interface SignInOptions {
  readonly book: CredentialBook
  readonly sessions: PeopleSessions
  readonly guard: AccessGuard
  readonly runtime: Runtime
  readonly logger: HubLogger
  /** Failed attempts allowed per minute and address. @default 10 */
  readonly maxAttemptsPerMinute: number
  /** A session was ended. */
  readonly onSignOut: () => void
}

const signInBody = z.union([
  z.strictObject({ token: z.string().min(1).max(512) }),
  z.strictObject({ name: z.string().min(1).max(64), password: z.string().min(1).max(256) }),
])
/** A sign-in's body is small, and is read from anyone. */
const maxBodyBytes = 4096
/** Passwords checked at once: each costs 32 MiB and a thread for a tenth of a second. */
const maxChecks = 2
/** Hashed even if there is no such user, so that timing reveals nothing. */
const nobody = `scrypt$${'A'.repeat(22)}$${'A'.repeat(43)}`

/** Signs users in and out: `POST`, `GET` and `DELETE /v1/session`. */
export function signInRoutes(app: FastifyInstance, options: SignInOptions): void {
  const { book, sessions, guard, logger, runtime, maxAttemptsPerMinute } = options
  const byAddress = new LocalLimiter(slidingWindow({ limit: maxAttemptsPerMinute, windowMs: 60_000 }), {
    maxKeys: 10_000,
    runtime,
  })
  // For attempts from many addresses against one name; generous enough that nobody can lock a person out for long.
  const byName = new LocalLimiter(slidingWindow({ limit: maxAttemptsPerMinute * 5, windowMs: 60_000 }), {
    maxKeys: 10_000,
    runtime,
  })
  let checks = 0

  const throttle = (limiter: LocalLimiter, key: string, about: object) => {
    const { allowed, retryAfterMs } = limiter.take(key)
    if (allowed) return
    const seconds = Math.ceil((retryAfterMs ?? 60_000) / 1000)
    logger.warn(about, 'a sign-in was refused: too many attempts')
    throw new ApiProblem(429, 'FB_SIGN_IN_THROTTLED', `too many attempts to sign in; try again in ${seconds} s`)
  }

  const prove = async (body: z.infer<typeof signInBody>): Promise<PersonGrant | undefined> => {
    if ('token' in body) return book.person(body.token, [])
    const person = book.personByName(body.name)
    if (checks >= maxChecks)
      throw new ApiProblem(429, 'FB_SIGN_IN_THROTTLED', 'others are signing in; try again in 1 s')
    checks++
    try {
      const kept = person?.password ?? nobody
      if (!(await isPassword(body.password, kept)) || person === undefined) return undefined
      return book.granted(person.id, `password ${digestOf(kept)}`)
    } finally {
      checks--
    }
  }

  app.post('/v1/session', { bodyLimit: maxBodyBytes }, async (request, reply) => {
    const body = parse(request)
    const name = 'token' in body ? '' : body.name
    const address = request.socket.remoteAddress ?? ''
    // An unknown name may be a password in the wrong field.
    const who = name === '' || book.personByName(name) !== undefined ? name : 'an unknown name'
    // One customer has a whole /64 of IPv6.
    const network = ipKey(address)
    throttle(byAddress, network, { address })
    if (name !== '') throttle(byName, name, { who })
    const grant = await prove(body)
    if (grant === undefined) {
      logger.warn({ address, who }, 'a sign-in failed')
      throw new ApiProblem(401, 'FB_TOKEN_REFUSED', 'the name and password, or the token, are not known here')
    }
    byAddress.refund(network)
    if (name !== '') byName.refund(name)
    const { credential } = grant
    logger.info({ who: credential.name, role: credential.role, address }, 'signed in')
    const { cookie, csrf } = await sessions.begin(grant, isSecure(request))
    return reply.header('set-cookie', cookie).send({ who: credential.name, role: credential.role, csrf })
  })

  app.get('/v1/session', async (request) => {
    const { who, role } = guard.authorize(request.raw, 'viewer')
    const csrf = guard.csrfOf(request.raw)
    return { who, role, ...(csrf !== undefined && { csrf }), canSignOut: guard.sessionOf(request.raw) !== undefined }
  })

  app.delete('/v1/session', async (request, reply) => {
    const { who } = guard.authorize(request.raw, 'viewer')
    const session = guard.sessionOf(request.raw)
    if (session !== undefined) {
      await sessions.end(session)
      options.onSignOut()
      logger.info({ who }, 'signed out')
    }
    return reply.header('set-cookie', sessions.endCookie()).code(204).send()
  })
}

function parse(request: FastifyRequest): z.infer<typeof signInBody> {
  const parsed = signInBody.safeParse(request.body)
  // The input is not repeated: it may be a secret.
  if (!parsed.success) throw new ApiProblem(400, 'FB_INPUT_INVALID', 'send {token} or {name, password}', 'body')
  return parsed.data
}

/** True if the browser's page came over TLS, ours or that of a proxy in front of us. */
function isSecure({ protocol, headers }: FastifyRequest): boolean {
  return protocol === 'https' || headers.origin?.startsWith('https:') === true
}
