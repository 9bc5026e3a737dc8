import { isWord, wholeNumber } from '../requests/words.ts'
import type { ListedClient } from './listed-client.ts'

/** Which clients CLIENT LIST or CLIENT KILL is about; what is undefined, any. */
export interface ClientFilter {
  readonly ids?: readonly number[]
  readonly address?: string
  readonly localAddress?: string
  readonly user?: string
  readonly type?: string
  readonly maxAgeSeconds?: number
  readonly skipsAsker: boolean
}

const textFilters = { addr: 'address', laddr: 'localAddress', user: 'user', type: 'type' } as const

/**
 * What the words behind CLIENT LIST or CLIENT KILL ask for; undefined where they are not known here: then it is the
 * server's matter alone.
 */
export function clientFilterOf(words: readonly Uint8Array[]): ClientFilter | undefined {
  let filter: ClientFilter = { skipsAsker: true }
  for (let at = 0; at < words.length; ) {
    const word = words[at++]!
    const value = words[at++]
    if (value === undefined) return undefined
    const known = Object.entries(textFilters).find(([name]) => isWord(word, name))
    if (known !== undefined) filter = { ...filter, [known[1]]: textOf(value) }
    else if (isWord(word, 'skipme')) filter = { ...filter, skipsAsker: isWord(value, 'yes') }
    else {
      const number = wholeNumber(value)
      if (number === undefined) return undefined
      if (isWord(word, 'maxage')) filter = { ...filter, maxAgeSeconds: number }
      else if (isWord(word, 'id')) {
        const ids = [number]
        // Of ids there may be several.
        for (let next = idAt(words, at); next !== undefined; next = idAt(words, ++at)) ids.push(next)
        filter = { ...filter, ids: [...(filter.ids ?? []), ...ids] }
      } else return undefined
    }
  }
  return filter
}

/** The filter of `CLIENT KILL address`, the old form, which ends the asker too. */
export function addressFilter(address: Uint8Array): ClientFilter {
  return { address: textOf(address), skipsAsker: false }
}

/**
 * True where the filter is about a client. One that has a connection to Redis for itself is in the server's own list,
 * under another id and address: it is meant only where it is named by those that it has here.
 */
export function isMeant(client: ListedClient, filter: ClientFilter): boolean {
  const { ids, address, localAddress, user, type, maxAgeSeconds } = filter
  const isNamed = ids !== undefined || address !== undefined || localAddress !== undefined
  if (client.isKnownToServer && !isNamed) return false
  return (
    (ids === undefined || ids.includes(client.id)) &&
    (address === undefined || address === client.peer) &&
    (localAddress === undefined || localAddress === client.local) &&
    (user === undefined || user === client.user) &&
    (type === undefined || type.toLowerCase() === client.type) &&
    (maxAgeSeconds === undefined || client.ageMs >= maxAgeSeconds * 1000)
  )
}

function idAt(words: readonly Uint8Array[], at: number): number | undefined {
  const word = words[at]
  return word === undefined ? undefined : wholeNumber(word)
}

function textOf(value: Uint8Array): string {
  return Buffer.from(value).toString('latin1')
}
