import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Runtime } from '@firebreak/core'
import type { HubStore } from '../store/hub-store.ts'
import type { CredentialBook, PersonGrant } from './credential-book.ts'
import { secretBytes } from './secrets.ts'

const cookieName = 'firebreak_session'
const secretKind = 'session-secret'
const endedKind = 'session-ended'
const lifeMs = 12 * 3_600_000
const refreshMs = 1000
/** Sessions that were signed out of and are not over by themselves yet. */
const maxEnded = 100_000

/** A person's session in a browser. */
export interface PeopleSession {
  readonly id: string
  readonly grant: PersonGrant
  /** Must come back in a header with every change: another site's page cannot read it. */
  readonly csrf: string
}

/**
 * Sessions of browsers, without a list of them: the cookie says who it is and until when, signed with a secret that all hubs
 * of a store share. Those that were signed out of are remembered until they are over; one whose token, password or
 * certificate is no longer taken is over at once.
 */
export class PeopleSessions {
  readonly #store: HubStore
  readonly #runtime: Runtime
  readonly #book: CredentialBook
  readonly #ended = new Map<string, number>()
  #secret: Buffer = secretBytes(32)
  #isOpen = false
  #lastRefresh = 0

  constructor(store: HubStore, runtime: Runtime, book: CredentialBook) {
    this.#store = store
    this.#runtime = runtime
    this.#book = book
    book.onChange(() => void this.#refresh())
  }

  async open(): Promise<void> {
    const known = (await this.#store.records(secretKind)).get('current')
    if (known === undefined) await this.#store.saveRecord(secretKind, 'current', this.#secret.toString('hex'))
    // The last writer wins: hubs that start together end up with one secret.
    this.#secret = Buffer.from((await this.#store.records(secretKind)).get('current')!, 'hex')
    await this.#loadEnded()
    this.#isOpen = true
  }

  /** The cookie of a new session. */
  begin({ credential, proof }: PersonGrant, isSecure: boolean): { readonly cookie: string; readonly csrf: string } {
    const until = Math.floor(this.#runtime.clock.now() + lifeMs)
    const id = secretBytes(12).toString('base64url')
    const content = Buffer.from(JSON.stringify({ id, until, of: credential.id, proof })).toString('base64url')
    const cookie = `${cookieName}=${content}.${this.#sign(content)}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${lifeMs / 1000}${isSecure ? '; Secure' : ''}`
    return { cookie, csrf: this.csrfOf(id) }
  }

  /** A cookie that ends the one before. */
  endCookie(): string {
    return `${cookieName}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0`
  }

  /** The session of a request; undefined if there is none, or it has ended. */
  find(cookies: string | undefined): PeopleSession | undefined {
    const text = cookies?.match(/(?:^|;\s*)firebreak_session=([\w-]{1,1024})\.([\w-]{1,64})(?:;|$)/)
    const [, content = '', signature = ''] = text ?? []
    if (content === '' || !isSame(signature, this.#sign(content))) return undefined
    const { id, until, of, proof } = JSON.parse(Buffer.from(content, 'base64url').toString()) as Record<string, string>
    if (Number(until) < this.#runtime.clock.now() || this.#ended.has(id!)) return undefined
    const found = this.#book.granted(of!, proof!)
    if (found === undefined) return undefined
    const grant = { ...found, isValid: () => found.isValid() && !this.#ended.has(id!) }
    return { id: id!, grant, csrf: this.csrfOf(id!) }
  }

  async end({ id }: PeopleSession): Promise<void> {
    const until = Math.floor(this.#runtime.clock.now() + lifeMs)
    this.#ended.set(id, until)
    await this.#store.saveRecord(endedKind, id, String(until))
  }

  /** The value that a change must carry for this name. */
  csrfOf(name: string): string {
    return this.#sign(`csrf ${name}`)
  }

  isCsrf(name: string, given: unknown): boolean {
    return typeof given === 'string' && isSame(given, this.csrfOf(name))
  }

  #sign(text: string): string {
    return createHmac('sha256', this.#secret).update(text).digest('base64url')
  }

  async #refresh(): Promise<void> {
    const now = this.#runtime.clock.now()
    if (now - this.#lastRefresh < refreshMs) return
    this.#lastRefresh = now
    // A store that was away at the start has the secret of all hubs.
    await (this.#isOpen ? this.#loadEnded() : this.open()).catch(() => {})
  }

  async #loadEnded(): Promise<void> {
    const now = this.#runtime.clock.now()
    for (const [id, until] of await this.#store.records(endedKind)) {
      if (Number(until) < now) await this.#store.saveRecord(endedKind, id, undefined)
      else if (this.#ended.size < maxEnded) this.#ended.set(id, Number(until))
    }
    for (const [id, until] of this.#ended) if (until < now) this.#ended.delete(id)
  }
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
