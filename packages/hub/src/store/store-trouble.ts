import { explainDiskTrouble } from '@firebreak/core'
import type { HubStore } from './hub-store.ts'

/** What a Redis client's error means, by the system's error name or its own words. */
const meanings: readonly (readonly [words: RegExp, meaning: string])[] = [
  [/ECONNREFUSED/, 'it refuses connections: is it running, and on this port?'],
  [/ENOTFOUND|EAI_AGAIN/, 'its host name is not known to the resolver'],
  [/EHOSTUNREACH|ENETUNREACH/, 'there is no route to its host'],
  [/ECONNRESET|EPIPE/, 'the connection was reset'],
  [/ETIMEDOUT|Command timed out|Socket timeout/, 'it does not answer in time'],
  [/slots cache|startup nodes/i, 'no node of the cluster answers'],
  [/max retries per request/i, 'the connection was lost before the answer'],
  [/Connection is closed|Stream isn't writeable|not connected/, 'there is no connection'],
]

/**
 * Why a call to the store failed, in words that do not depend on the client library. The deepest cause knows best; what
 * a server answered, and what is unknown, stays as it is.
 */
export function explainStoreTrouble(error: unknown): string {
  const causes = [...causesOf(error)].reverse()
  for (const { name, message, code } of causes) {
    if (name === 'ReplyError') return `it answered: ${message}`
    const found = meanings.find(([words]) => words.test(code ?? '') || words.test(message))
    if (found !== undefined) return found[1]
  }
  return explainDiskTrouble(error)
}

/** The shared store as alarms call it, with its address; undefined if the store is not shared. */
export function sharedName({ name, address }: Pick<HubStore, 'name' | 'address'>): string | undefined {
  if (name !== 'redis') return undefined
  return `the Redis that the hubs share${address === undefined ? '' : ` (${address})`}`
}

/** Any store, as alarms call it. */
export function storeName(store: Pick<HubStore, 'name' | 'address'>): string {
  return sharedName(store) ?? `the ${store.name} store`
}

interface PlainError {
  readonly name: string
  readonly message: string
  readonly code?: string
}

function* causesOf(error: unknown): Generator<PlainError> {
  let cause = error
  for (let depth = 0; cause instanceof Error && depth < 10; depth++) {
    const { code } = cause as { code?: unknown }
    const { name, message } = cause
    yield { name, message, ...(typeof code === 'string' && { code }) }
    cause = cause.cause ?? (cause as { lastNodeError?: unknown }).lastNodeError
  }
}
