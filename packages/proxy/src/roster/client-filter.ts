import { integerIn, isWord } from '../requests/words.ts'

/** Which clients a CLIENT LIST or CLIENT KILL applies to; undefined fields match any. */
export interface ClientFilter {
  readonly ids?: readonly number[]
  readonly address?: string
  readonly localAddress?: string
  readonly user?: string
  readonly type?: string
  readonly maxAgeSeconds?: number
  readonly skipsAsker: boolean
}

/** A query about the clients of all threads. */
export interface RosterQuery {
  readonly act: 'list' | 'kill'
  readonly filter: ClientFilter
}

/** A client of the proxy in CLIENT LIST. */
export interface RosterRow {
  /** The address of its dedicated connection, as the server sees it. */
  readonly connectionAddress: string | undefined
  /** What its row in the server's list shows instead of that connection's fields. */
  readonly fields: Readonly<Record<string, string>>
  /** Its row if the server has none; undefined if the filter excludes it. */
  readonly line: string | undefined
}

/** The result of a query. */
export interface RosterAnswer {
  /** For `list`: the matching clients, and those whose connection the server lists. */
  readonly rows: readonly RosterRow[]
  /** For `kill`: how many were closed. */
  readonly killed: number
}

const textFilters = { addr: 'address', laddr: 'localAddress', user: 'user', type: 'type' } as const

/**
 * Parses the arguments of CLIENT LIST or CLIENT KILL; undefined if they are unknown here: then only the server handles
 * it.
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
      const number = integerIn(value)
      if (number === undefined) return undefined
      if (isWord(word, 'maxage')) filter = { ...filter, maxAgeSeconds: number }
      else if (isWord(word, 'id')) {
        const ids = [number]
        // There may be several ids.
        for (let next = idAt(words, at); next !== undefined; next = idAt(words, ++at)) ids.push(next)
        filter = { ...filter, ids: [...(filter.ids ?? []), ...ids] }
      } else return undefined
    }
  }
  return filter
}

/** The filter of `CLIENT KILL address`, the old form, which also closes the sender. */
export function addressFilter(address: Uint8Array): ClientFilter {
  return { address: textOf(address), skipsAsker: false }
}

function idAt(words: readonly Uint8Array[], at: number): number | undefined {
  const word = words[at]
  return word === undefined ? undefined : integerIn(word)
}

function textOf(value: Uint8Array): string {
  return Buffer.from(value).toString('latin1')
}
