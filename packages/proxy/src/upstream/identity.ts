import { createHash } from 'node:crypto'

/** Who a client is to Redis: a user and password, or nobody yet. */
export interface Identity {
  /** The same for the same credentials; no password can be read from it. Empty for a client that showed none. */
  readonly id: string
  readonly username: string | Uint8Array | undefined
  readonly password: string | Uint8Array | undefined
}

/** A client that has not shown credentials: what it may do is the server's matter. */
export const nobody: Identity = { id: '', username: undefined, password: undefined }

/** The identity of credentials. */
export function identityOf(
  username: string | Uint8Array | undefined,
  password: string | Uint8Array | undefined,
): Identity {
  if (password === undefined) return nobody
  const hash = createHash('sha256')
  hash
    .update(username ?? '')
    .update('\0')
    .update(password)
  return { id: hash.digest('base64url'), username, password }
}

/** The state that connections to Redis are shared by: who, which protocol, which database. */
export interface ConnectionState {
  readonly identity: Identity
  readonly version: 2 | 3
  readonly database: number
}
