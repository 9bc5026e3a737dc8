import { signal } from '@preact/signals'

const storageName = 'firebreak-token'

/** The token that this page shows the hub; kept for this tab only. */
let token = sessionStorage.getItem(storageName) ?? undefined

/** True while the hub wants a token that it was not given. */
export const isTokenWanted = signal(false)

/** What a request carries. */
export function authorization(): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` }
}

/**
 * What a WebSocket carries: a browser can set no header there, so the token is the name of a subprotocol. Characters that
 * such a name cannot have are percent-encoded.
 */
export function subprotocols(): string[] {
  if (token === undefined) return []
  const name = encodeURIComponent(token).replace(/[()]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`)
  return ['firebreak', `firebreak-token.${name}`]
}

export function useToken(text: string): void {
  token = text
  sessionStorage.setItem(storageName, text)
}
