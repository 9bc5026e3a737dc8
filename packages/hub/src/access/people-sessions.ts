import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { Runtime } from '@firebreak/core'
import { z } from 'zod'
import type { HubStore } from '../store/hub-store.ts'
import type { CredentialBook, PersonGrant } from './credential-book.ts'
import { secretBytes } from './secrets.ts'

const cookieName = 'firebreak_session'
const sessionKind = 'session'
const csrfKind = 'csrf-secret'
/** Records of earlier versions, whose cookies were signed with a secret in the store. */
const oldSecretKind = 'session-secret'
const oldEndedKind = 'session-ended'
const lifeMs = 12 * 3_600_000
const refreshMs = 1000
/** An unknown cookie makes a hub check the shared store, but not more often than this. */
const lookEveryMs = 250
/** Sessions of one person; a further one ends the oldest. */
const maxOfPerson = 100
const maxSessions = 10_000

const keptSchema = z.object({ of: z.string(), proof: z.string(), until: z.number() })
type Kept = z.infer<typeof keptSchema>

/** A person's session in a browser. */
export interface PeopleSession {
  /** Its id in the store, which differs from the cookie. */
  readonly digest: string
  readonly grant: PersonGrant
  /** Required in a header with every change: another site's page cannot read it. */
  readonly csrf: string
}

/**
 * Browser sessions. The cookie is a random name, and the store that all hubs share keeps only its hash: reading the
 * store does not yield a valid cookie. A session ends after half a day, on sign-out, and when the token, password or
 * certificate behind it is no longer accepted. While the store is unreachable, a session begun here is valid here and
 * is stored later.
 */
export class PeopleSessions {
  readonly #store: HubStore
  readonly #runtime: Runtime
  readonly #book: CredentialBook
  #known = new Map<string, Kept>()
  /** Sessions that are not in the store yet. */
  readonly #unsaved = new Set<string>()
  /** Ended sessions, and when they would have expired: the store may still contain them. */
  readonly #ended = new Map<string, number>()
  #csrfSecret = secretBytes(32).toString('hex')
  #isOpen = false
  #lastRefresh = 0
  #lookedAt = Number.NEGATIVE_INFINITY
  #looking: Promise<void> = Promise.resolve()
  #nextLook: Promise<void> | undefined

  constructor(store: HubStore, runtime: Runtime, book: CredentialBook) {
    this.#store = store
    this.#runtime = runtime
    this.#book = book
    book.onChange(() => void this.#refresh())
  }

  async open(): Promise<void> {
    for (const kind of [oldSecretKind, oldEndedKind]) {
      for (const name of (await this.#store.records(kind)).keys()) {
        await this.#store.saveRecord(kind, name, undefined)
      }
    }
    const known = (await this.#store.records(csrfKind)).get('current')
    if (known === undefined) await this.#store.saveRecord(csrfKind, 'current', this.#csrfSecret)
    await this.#load()
    this.#isOpen = true
  }

  /** The cookie of a new session; resolves once every hub that shares the store can look it up. */
  async begin(
    { credential, proof }: PersonGrant,
    isSecure: boolean,
  ): Promise<{ readonly cookie: string; readonly csrf: string }> {
    const id = secretBytes(32).toString('base64url')
    const digest = digestOfId(id)
    this.#makeRoom(credential.id)
    this.#known.set(digest, { of: credential.id, proof, until: Math.floor(this.#runtime.clock.now() + lifeMs) })
    this.#unsaved.add(digest)
    await this.#saveUnsaved().catch(() => {})
    const cookie = `${cookieName}=${id}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${lifeMs / 1000}${isSecure ? '; Secure' : ''}`
    return { cookie, csrf: csrfOfId(id) }
  }

  /** A cookie that deletes the session's cookie. */
  endCookie(): string {
    return `${cookieName}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0`
  }

  /** Checks the shared store, because another hub may have begun this request's session a moment ago. */
  async learn(cookies: string | undefined): Promise<void> {
    if (this.#store.board === undefined || !this.#isOpen) return
    const id = idIn(cookies)
    const digest = id === undefined ? undefined : digestOfId(id)
    if (digest === undefined || this.#known.has(digest) || this.#ended.has(digest)) return
    this.#nextLook ??= this.#look()
    await this.#nextLook
  }

  /** The session of a request; undefined if there is none, or it has ended. */
  find(cookies: string | undefined): PeopleSession | undefined {
    const id = idIn(cookies)
    if (id === undefined) return undefined
    const digest = digestOfId(id)
    const kept = this.#known.get(digest)
    if (kept === undefined || !this.#holds(digest)) return undefined
    const found = this.#book.granted(kept.of, kept.proof)
    if (found === undefined) return undefined
    const grant = { ...found, isValid: () => found.isValid() && this.#holds(digest) }
    return { digest, grant, csrf: csrfOfId(id) }
  }

  async end({ digest }: PeopleSession): Promise<void> {
    this.#drop(digest)
    await this.#store.saveRecord(sessionKind, digest, undefined)
  }

  /** The CSRF value for a caller identified by a certificate or a proxy's header. */
  csrfOfName(name: string): string {
    return createHmac('sha256', this.#csrfSecret).update(`csrf name ${name}`).digest('base64url')
  }

  #holds(digest: string): boolean {
    return (this.#known.get(digest)?.until ?? 0) >= this.#runtime.clock.now()
  }

  #drop(digest: string): void {
    const { until } = this.#known.get(digest) ?? { until: this.#runtime.clock.now() + lifeMs }
    this.#known.delete(digest)
    this.#unsaved.delete(digest)
    this.#ended.set(digest, until)
  }

  /** Ends the oldest session, of the person or of all, if there are too many. */
  #makeRoom(credentialId: string): void {
    const own = [...this.#known].filter(([, { of }]) => of === credentialId)
    const crowd = own.length >= maxOfPerson ? own : this.#known.size >= maxSessions ? [...this.#known] : []
    const [oldest] = crowd.sort(([, a], [, b]) => a.until - b.until)
    // The next read of the store removes its record.
    if (oldest !== undefined) this.#drop(oldest[0])
  }

  async #saveUnsaved(): Promise<void> {
    for (const digest of this.#unsaved) {
      const kept = this.#known.get(digest)
      if (kept !== undefined) await this.#store.saveRecord(sessionKind, digest, JSON.stringify(kept))
      this.#unsaved.delete(digest)
    }
  }

  async #refresh(): Promise<void> {
    const now = this.#runtime.clock.now()
    if (now - this.#lastRefresh < refreshMs) return
    this.#lastRefresh = now
    await (this.#isOpen ? this.#load() : this.open()).catch(() => {})
  }

  async #look(): Promise<void> {
    // The read in progress may have begun before the session did.
    await this.#looking
    const waitMs = this.#lookedAt + lookEveryMs - this.#runtime.clock.now()
    if (waitMs > 0) await new Promise<void>((resolve) => this.#runtime.timers.setTimeout(resolve, waitMs))
    this.#lookedAt = this.#runtime.clock.now()
    this.#nextLook = undefined
    this.#looking = this.#load().catch(() => {})
    await this.#looking
  }

  async #load(): Promise<void> {
    await this.#saveUnsaved()
    const before = new Set(this.#known.keys())
    const records = await this.#store.records(sessionKind)
    // If hubs start together, the last one's value applies to all.
    this.#csrfSecret = (await this.#store.records(csrfKind)).get('current') ?? this.#csrfSecret
    const now = this.#runtime.clock.now()
    const loaded = new Map<string, Kept>()
    for (const [digest, text] of records) {
      const kept = keptIn(text)
      const isOver = kept === undefined || kept.until < now || this.#ended.has(digest)
      if (isOver) await this.#store.saveRecord(sessionKind, digest, undefined)
      else if (loaded.size < maxSessions) loaded.set(digest, kept)
    }
    // Sessions begun meanwhile are not among the records yet.
    for (const [digest, kept] of this.#known) if (!before.has(digest)) loaded.set(digest, kept)
    for (const digest of this.#ended.keys()) loaded.delete(digest)
    this.#known = loaded
    for (const [digest, until] of this.#ended) if (until < now) this.#ended.delete(digest)
  }
}

/** Whether a change carries the right CSRF value. */
export function isCsrf(given: unknown, wanted: string): boolean {
  if (typeof given !== 'string') return false
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)]
  return a.length === b.length && timingSafeEqual(a, b)
}

function idIn(cookies: string | undefined): string | undefined {
  return cookies?.match(/(?:^|;\s*)firebreak_session=([\w-]{43})(?:;|$)/)?.[1]
}

/** What the store keeps of a cookie. It has 256 random bits, so one hash is enough. */
function digestOfId(id: string): string {
  return createHash('sha256').update(`session ${id}`).digest('hex')
}

/** Derived from the cookie, which only the browser has, and with a key that is not in the store. */
function csrfOfId(id: string): string {
  return createHmac('sha256', id).update('csrf').digest('base64url')
}

function keptIn(text: string): Kept | undefined {
  try {
    return keptSchema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
