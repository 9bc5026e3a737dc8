import { type ConnectionState, type Identity, nobody } from '../upstream/identity.ts'

/** What a client has said about itself. */
export class Session implements ConnectionState {
  readonly #start: Pick<Session, 'identity' | 'database' | 'isKnown' | 'username'>
  identity: Identity
  version: 2 | 3 = 2
  database: number
  /** As given by CLIENT SETNAME or HELLO. */
  name = ''
  /** False until a client of a proxy with users of its own has shown a password. */
  isKnown: boolean
  /** Where the proxy has users of its own, the name of this one. */
  username: string | undefined

  constructor(identity: Identity, database: number, isKnown: boolean, username?: string) {
    this.#start = { identity, database, isKnown, username }
    this.identity = identity
    this.database = database
    this.isKnown = isKnown
    this.username = username
  }

  /** Who the client is, as CLIENT LIST shows it. */
  get user(): string {
    return this.username ?? String(this.identity.username ?? 'default')
  }

  /** True where the client has shown credentials to Redis itself. */
  get hasShownUser(): boolean {
    return this.username === undefined && this.identity.id !== this.#start.identity.id
  }

  /** True where a client is to Redis, as it connects, what any connection is that says nothing. */
  get startsPlain(): boolean {
    return this.#start.identity.id === nobody.id && this.#start.database === 0
  }

  /** As it was when the client connected. */
  reset(): void {
    this.identity = this.#start.identity
    this.database = this.#start.database
    this.isKnown = this.#start.isKnown
    this.version = 2
    this.name = ''
    this.username = this.#start.username
  }

  /** The state of connections that the client can use now. */
  snapshot(): ConnectionState {
    return { identity: this.identity, version: this.version, database: this.database }
  }
}
