import { type ConnectionState, type Identity, nobody } from '../upstream/identity.ts'

/** What a client has told us about itself. */
export class Session implements ConnectionState {
  readonly #start: Pick<Session, 'identity' | 'database' | 'isKnown' | 'username'>
  identity: Identity
  version: 2 | 3 = 2
  database: number
  /** As set by CLIENT SETNAME or HELLO. */
  name = ''
  /** False until a client of a proxy with its own users has authenticated. */
  isKnown: boolean
  /** The name of this client's user, if the proxy has its own users. */
  username: string | undefined

  constructor(identity: Identity, database: number, isKnown: boolean, username?: string) {
    this.#start = { identity, database, isKnown, username }
    this.identity = identity
    this.database = database
    this.isKnown = isKnown
    this.username = username
  }

  /** The client's user, as shown in CLIENT LIST. */
  get user(): string {
    return this.username ?? String(this.identity.username ?? 'default')
  }

  /** True if the client has authenticated to Redis itself. */
  get hasShownUser(): boolean {
    return this.username === undefined && this.identity.id !== this.#start.identity.id
  }

  /** True if the client's identity at connect time is that of any unauthenticated connection to Redis. */
  get startsPlain(): boolean {
    return this.#start.identity.id === nobody.id && this.#start.database === 0
  }

  /** Restores the state at connect time. */
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
