import type { Runtime, TimerHandle } from '@firebreak/core'
import { reportKeyId, reportKeyOf } from '@firebreak/core/node'
import { ApiProblem } from '../errors.ts'
import type { HubLogger } from '../hub-options.ts'
import type { HubStore } from '../store/hub-store.ts'
import {
  type AppCredential,
  type AppGrant,
  type Credential,
  credentialSchema,
  type PersonCredential,
  type Secret,
} from './credential.ts'
import { digestOf, newToken, secretBytes } from './secrets.ts'

/** A person who has signed in. */
export interface PersonGrant {
  readonly credential: PersonCredential
  /** What they signed in with: a session ends when it is no longer accepted. */
  readonly proof: string
  readonly isValid: () => boolean
}

/** A credential as shown to users, without secrets. */
export interface CredentialView {
  readonly id: string
  readonly name: string
  readonly kind: 'app' | 'person'
  readonly role?: string
  readonly services?: readonly string[]
  /** How many processes may report under it at a time. */
  readonly maxProcesses?: number | undefined
  readonly clusters?: readonly string[]
  readonly certificates: readonly string[]
  readonly hasPassword: boolean
  readonly createdAt: number
  readonly createdBy: string
  readonly lastUsedAt: number | null
  /** Tokens that are accepted now; for a replaced one, until when. */
  readonly tokens: readonly { readonly createdAt: number; readonly expiresAt: number | null }[]
}

export type NewCredential =
  | Pick<AppCredential, 'kind' | 'name' | 'services' | 'clusters' | 'certificates' | 'maxProcesses'>
  | Pick<PersonCredential, 'kind' | 'name' | 'role' | 'certificates' | 'password'>

export interface CredentialBookOptions {
  readonly store: HubStore
  readonly runtime: Runtime
  readonly logger: HubLogger
  /** Records who changed what. */
  readonly audit: (who: string, what: string, before: unknown, after: unknown) => Promise<void>
  /** The credentials of the tokens file. */
  readonly fixed: readonly Credential[]
}

const recordKind = 'credential'
const useKind = 'credential-use'
/** Other hubs of a shared store learn of a change within this. */
const refreshMs = 1000
/** A use is recorded at most this often. */
const useEveryMs = 10_000
const maxCredentials = 10_000

interface Taken<Of extends Credential = Credential> {
  readonly credential: Of
  readonly secret: Secret
}

/**
 * Who may call the hub: the credentials of the tokens file and of the store, which all hubs share. Only hashes are
 * kept. A change applies here at once and at the other hubs within a second; while the store is unreachable, the last
 * known credentials apply.
 */
export class CredentialBook {
  readonly #options: CredentialBookOptions
  readonly #listeners = new Set<() => void>()
  readonly #lastUse = new Map<string, number>()
  readonly #writtenUse = new Map<string, number>()
  #fixed: readonly Credential[]
  #stored = new Map<string, Credential>()
  #texts = ''
  #isKnown = false
  #isLocked = false
  #byDigest = new Map<string, Taken>()
  #byKey = new Map<string, Taken<AppCredential>>()
  #byCertificate = new Map<string, Credential>()
  #timer: TimerHandle | undefined

  constructor(options: CredentialBookOptions) {
    this.#options = options
    this.#fixed = options.fixed
    this.#index()
  }

  /**
   * False: everyone on this machine may do everything. True from the first credential on, and it stays true: an emptied
   * file or a store that lost its data must not open a hub that required tokens a moment before.
   */
  get isLocked(): boolean {
    return this.#isLocked
  }

  /** False until the store, which may contain tokens, has answered for the first time. */
  get isKnown(): boolean {
    return this.#isKnown
  }

  async open(): Promise<void> {
    await this.#load()
    for (const [id, at] of await this.#options.store.records(useKind)) this.#lastUse.set(id, Number(at))
    this.#isKnown = true
  }

  start(): void {
    this.#timer = this.#options.runtime.timers.setInterval(() => void this.#refresh(), refreshMs)
  }

  async close(): Promise<void> {
    this.#timer?.cancel()
    await this.#writeUse(0).catch(() => {})
  }

  /** Called after every change, and when a token expires. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener)
  }

  /** The tokens file was read again. */
  setFixed(fixed: readonly Credential[]): void {
    this.#fixed = fixed
    this.#changed()
  }

  app(token: string | undefined, certificates: readonly string[]): AppGrant | undefined {
    const digest = token === undefined ? '' : digestOf(token)
    if (this.#taken(digest)?.credential.kind === 'app') {
      return this.#appGrant(() => this.#taken(digest)?.credential)
    }
    const name = certificates.find((one) => this.#byCertificate.get(one)?.kind === 'app')
    return name === undefined ? undefined : this.#appGrant(() => this.#byCertificate.get(name))
  }

  /** The app of a signed report, and the key that must have signed it. */
  signer(keyId: string): { readonly grant: AppGrant; readonly reportKey: string } | undefined {
    const taken = this.#byKey.get(keyId)
    if (taken === undefined || this.#taken(taken.secret.digest) === undefined) return undefined
    const grant = this.#appGrant(() => this.#taken(taken.secret.digest)?.credential)
    return grant && { grant, reportKey: taken.secret.reportKey }
  }

  person(token: string | undefined, certificates: readonly string[]): PersonGrant | undefined {
    const digest = token === undefined ? '' : digestOf(token)
    const byToken = this.#taken(digest)?.credential
    if (byToken?.kind === 'person') return this.#personGrant(byToken, `token ${digest}`)
    const name = certificates.find((one) => this.#byCertificate.get(one)?.kind === 'person')
    const found = name === undefined ? undefined : this.#byCertificate.get(name)
    return found?.kind === 'person' ? this.#personGrant(found, `certificate ${name}`) : undefined
  }

  personByName(name: string): PersonCredential | undefined {
    return this.#all().find((one): one is PersonCredential => one.kind === 'person' && one.name === name)
  }

  /** A person who has already been identified: by a password, or by a session. */
  granted(id: string, proof: string): PersonGrant | undefined {
    const credential = this.#get(id)
    return credential?.kind === 'person' && this.#isProof(credential, proof)
      ? this.#personGrant(credential, proof)
      : undefined
  }

  list(): CredentialView[] {
    return this.#all().map((one) => this.#view(one))
  }

  async create(
    given: NewCredential,
    who: string,
  ): Promise<{ readonly token: string; readonly credential: CredentialView }> {
    if (this.#all().some(({ kind, name }) => kind === given.kind && name === given.name)) {
      const message = `there is ${given.kind === 'app' ? 'an app' : 'a person'} ${given.name} ; rotate or revoke its token`
      throw new ApiProblem(409, 'FB_CREDENTIAL_EXISTS', message, 'name')
    }
    const taken = given.certificates.find((name) => this.#byCertificate.has(name))
    if (taken !== undefined) {
      const message = `the certificate ${taken} belongs to ${this.#byCertificate.get(taken)!.name} already`
      throw new ApiProblem(409, 'FB_CREDENTIAL_EXISTS', message, 'certificates')
    }
    if (this.#stored.size >= maxCredentials) {
      throw new ApiProblem(409, 'FB_CREDENTIAL_EXISTS', `there are ${maxCredentials} tokens, the maximum`)
    }
    const now = this.#now()
    const token = newToken()
    const id = secretBytes(4).toString('hex')
    const credential: Credential = { ...given, id, secrets: [secretOf(token, now)], createdAt: now, createdBy: who }
    await this.#save(credential, who, `create token ${given.name}`)
    return { token, credential: this.#view(credential) }
  }

  /** Creates a new token; the old ones are accepted for another `graceMs`. */
  async rotate(
    id: string,
    graceMs: number,
    who: string,
  ): Promise<{ readonly token: string; readonly credential: CredentialView }> {
    const credential = this.#changeable(id)
    const now = this.#now()
    const token = newToken()
    const old = credential.secrets.map((one) => ({
      ...one,
      expiresAt: Math.min(one.expiresAt ?? Infinity, now + graceMs),
    }))
    const secrets = [...old.filter(({ expiresAt }) => expiresAt > now), secretOf(token, now)].slice(-3)
    const changed = { ...credential, secrets }
    await this.#save(changed, who, `rotate token ${credential.name}`)
    return { token, credential: this.#view(changed) }
  }

  /** Stops accepting it at once and closes the connections that use it. */
  async revoke(id: string, who: string): Promise<void> {
    const credential = this.#changeable(id)
    this.#refuseLast(credential)
    await this.#options.store.saveRecord(recordKind, credential.id, undefined)
    this.#stored.delete(credential.id)
    this.#changed()
    await this.#options.audit(who, `revoke token ${credential.name}`, this.#view(credential), null)
  }

  async #save(credential: Credential, who: string, what: string): Promise<void> {
    const before = this.#stored.get(credential.id)
    await this.#options.store.saveRecord(recordKind, credential.id, JSON.stringify(credential))
    this.#stored.set(credential.id, credential)
    this.#changed()
    await this.#options.audit(who, what, before === undefined ? null : this.#view(before), this.#view(credential))
  }

  /**
   * Without an admin nobody could create another token, and without any credential the next start would require none.
   */
  #refuseLast(credential: Credential): void {
    const others = this.#all().filter(({ id }) => id !== credential.id)
    const isAdmin = (one: Credential) => one.kind === 'person' && one.role === 'admin'
    if (others.length > 0 && (!isAdmin(credential) || others.some(isAdmin))) return
    const what = isAdmin(credential) ? 'admin' : 'token'
    const message = `${credential.name} is the last ${what}: create another first, or replace its token at once with: firebreak token rotate ${credential.name} --grace 0s`
    throw new ApiProblem(409, 'FB_CREDENTIAL_LAST', message, 'id')
  }

  #changeable(name: string): Credential {
    const found = this.#all().filter((one) => one.id === name || one.name === name)
    if (found.length > 1) {
      const message = `${name} is both an app and a person; name it by its id: ${found.map(({ id }) => id).join(', ')}`
      throw new ApiProblem(409, 'FB_CREDENTIAL_EXISTS', message, 'id')
    }
    const credential = found[0]
    if (credential === undefined) {
      throw new ApiProblem(
        404,
        'FB_NOT_FOUND',
        `there is no token ${JSON.stringify(name)}; see: firebreak token list`,
        'id',
      )
    }
    if (this.#stored.has(credential.id)) return credential
    const message = `${credential.name} comes from the tokens file: change it there, the hub reloads the file within a second`
    throw new ApiProblem(409, 'FB_CREDENTIAL_FIXED', message, 'id')
  }

  #appGrant(find: () => Credential | undefined): AppGrant | undefined {
    const credential = find()
    if (credential?.kind !== 'app') return undefined
    const { name, services, clusters, maxProcesses, id } = credential
    this.#used(id)
    // A credential with a changed scope is a different one: its clients have to reconnect.
    return { name, services, clusters, maxProcesses, isValid: () => find()?.id === id }
  }

  #personGrant(credential: PersonCredential, proof: string): PersonGrant {
    this.#used(credential.id)
    return {
      credential,
      proof,
      isValid: () => {
        const now = this.#get(credential.id)
        return now?.kind === 'person' && now.role === credential.role && this.#isProof(now, proof)
      },
    }
  }

  #isProof(credential: PersonCredential, proof: string): boolean {
    const [kind, value = ''] = proof.split(/ (.*)/s)
    if (kind === 'token') return this.#taken(value)?.credential.id === credential.id
    if (kind === 'certificate') return credential.certificates.includes(value)
    return kind === 'password' && credential.password !== undefined && value === digestOf(credential.password)
  }

  #taken(digest: string): Taken | undefined {
    const taken = this.#byDigest.get(digest)
    return taken !== undefined && (taken.secret.expiresAt ?? Infinity) > this.#now() ? taken : undefined
  }

  #all(): Credential[] {
    return [...this.#fixed, ...this.#stored.values()]
  }

  #get(id: string): Credential | undefined {
    return this.#stored.get(id) ?? this.#fixed.find((one) => one.id === id)
  }

  #view(credential: Credential): CredentialView {
    const { id, name, kind, certificates, createdAt, createdBy, secrets } = credential
    return {
      id,
      name,
      kind,
      ...(credential.kind === 'app'
        ? { services: credential.services, clusters: credential.clusters, maxProcesses: credential.maxProcesses }
        : { role: credential.role }),
      certificates,
      hasPassword: credential.kind === 'person' && credential.password !== undefined,
      createdAt,
      createdBy,
      lastUsedAt: this.#lastUse.get(id) ?? null,
      tokens: secrets.map((one) => ({ createdAt: one.createdAt, expiresAt: one.expiresAt ?? null })),
    }
  }

  #used(id: string): void {
    this.#lastUse.set(id, this.#now())
  }

  #now(): number {
    return this.#options.runtime.clock.now()
  }

  async #refresh(): Promise<void> {
    try {
      if (this.#isKnown) await this.#load()
      else await this.open()
      await this.#writeUse(useEveryMs)
    } catch {
      // The journal reports an unreachable store; the last known credentials apply meanwhile.
    }
    // A replaced token may have expired.
    for (const listener of this.#listeners) listener()
  }

  async #load(): Promise<void> {
    const records = await this.#options.store.records(recordKind)
    // The last one cannot be revoked, so a store without any has lost them.
    if (records.size === 0 && this.#stored.size > 0) return this.#saveAgain()
    const texts = [...records].sort(([a], [b]) => (a < b ? -1 : 1)).join('\n')
    if (texts === this.#texts) return
    const stored = new Map<string, Credential>()
    for (const [id, text] of records) {
      const parsed = credentialSchema.safeParse(JSON.parse(text))
      if (parsed.success) stored.set(id, parsed.data as Credential)
      else this.#options.logger.warn({ id }, 'ignoring a token in the store that was written by another version')
    }
    this.#texts = texts
    this.#stored = stored
    this.#changed()
  }

  async #saveAgain(): Promise<void> {
    this.#options.logger.warn({ count: this.#stored.size }, 'the store has lost the tokens; writing them again')
    for (const [id, one] of this.#stored) await this.#options.store.saveRecord(recordKind, id, JSON.stringify(one))
  }

  async #writeUse(everyMs: number): Promise<void> {
    for (const [id, at] of this.#lastUse) {
      const written = this.#writtenUse.get(id) ?? 0
      if (!this.#stored.has(id) || at <= written || this.#now() - written < everyMs) continue
      await this.#options.store.saveRecord(useKind, id, String(Math.floor(at)))
      this.#writtenUse.set(id, this.#now())
    }
    for (const id of this.#writtenUse.keys()) {
      if (this.#stored.has(id)) continue
      this.#writtenUse.delete(id)
      this.#lastUse.delete(id)
      await this.#options.store.saveRecord(useKind, id, undefined)
    }
  }

  #changed(): void {
    this.#index()
    for (const listener of this.#listeners) listener()
  }

  #index(): void {
    this.#isLocked ||= this.#fixed.length + this.#stored.size > 0
    this.#byDigest = new Map()
    this.#byKey = new Map()
    this.#byCertificate = new Map()
    for (const credential of this.#all()) {
      for (const name of credential.certificates) this.#byCertificate.set(name, credential)
      for (const secret of credential.secrets) {
        this.#byDigest.set(secret.digest, { credential, secret })
        if (credential.kind === 'app') this.#byKey.set(reportKeyId(secret.reportKey), { credential, secret })
      }
    }
  }
}

function secretOf(token: string, now: number): Secret {
  return { digest: digestOf(token), reportKey: reportKeyOf(token), createdAt: now }
}
