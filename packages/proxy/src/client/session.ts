import type { ConnectionState, Identity } from '../upstream/identity.ts'

/** What a client has said about itself. */
export class Session implements ConnectionState {
  readonly #start: { readonly identity: Identity; readonly database: number; readonly isKnown: boolean }
  identity: Identity
  version: 2 | 3 = 2
  database: number
  /** As given by CLIENT SETNAME or HELLO. */
  name = ''
  /** False until a client of a proxy with users of its own has shown a password. */
  isKnown: boolean
  /** Of a user of the proxy's own, its name. */
  username = 'default'

  constructor(identity: Identity, database: number, isKnown: boolean) {
    this.#start = { identity, database, isKnown }
    this.identity = identity
    this.database = database
    this.isKnown = isKnown
  }

  /** As it was when the client connected. */
  reset(): void {
    this.identity = this.#start.identity
    this.database = this.#start.database
    this.isKnown = this.#start.isKnown
    this.version = 2
    this.name = ''
    this.username = 'default'
  }

  /** The state of connections that the client can use now. */
  snapshot(): ConnectionState {
    return { identity: this.identity, version: this.version, database: this.database }
  }
}
