import { createHash } from 'node:crypto'

/** A client's identity to Redis: a user and password, or nobody yet. */
export interface Identity {
  /** The same for equal credentials; reveals no password. Empty for an unauthenticated client. */
  readonly id: string
  readonly username: string | Uint8Array | undefined
  readonly password: string | Uint8Array | undefined
}

/** An unauthenticated client: the server decides what it may do. */
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

/** The state that shared connections have in common: user, protocol and database. */
export interface ConnectionState {
  readonly identity: Identity
  readonly version: 2 | 3
  readonly database: number
}
