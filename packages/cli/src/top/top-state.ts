import { type KeyView, type Overview, readableKey } from '@firebreak/core'

export const topSorts = ['rate', 'share', 'writes', 'bytes', 'minute', 'name'] as const
export type TopSort = (typeof topSorts)[number]

/** Actions on a key; each creates a rule that expires after ten minutes. */
export type TopAction = 'cache' | 'copy' | 'limit' | 'ignore' | 'undo'

/** The current input. */
type TopInput =
  | { readonly kind: 'keys' }
  | { readonly kind: 'filter'; readonly text: string }
  | { readonly kind: 'limit'; readonly text: string }
  | { readonly kind: 'confirm'; readonly action: TopAction; readonly limit?: number }

/** The state of the screen: sorting, filter and selection, and what is being typed. */
export interface TopState {
  readonly sort: TopSort
  readonly isReversed: boolean
  readonly filter: string
  readonly isPaused: boolean
  /**
   * The chosen key, by cluster and key text, so that it stays chosen when rows move or it leaves the screen: a key
   * whose action is being undone may no longer be in use.
   */
  readonly chosen: string | undefined
  readonly isDetail: boolean
  readonly input: TopInput
  /** The result of the last action. */
  readonly note: string
}

/** What a pressed key requests besides another state. */
export type TopEffect =
  | { readonly kind: 'none' }
  | { readonly kind: 'end' }
  | { readonly kind: 'act'; readonly action: TopAction; readonly key: KeyName; readonly limit?: number }

/** A key by its cluster and its key text. */
export type KeyName = Pick<KeyView, 'redisClusterId' | 'key'>

export const initialTop: TopState = {
  sort: 'rate',
  isReversed: false,
  filter: '',
  isPaused: false,
  chosen: undefined,
  isDetail: false,
  input: { kind: 'keys' },
  note: '',
}

const none: TopEffect = { kind: 'none' }
const typing: TopInput = { kind: 'keys' }

/** The rows of the screen: filtered, in order, with the figures of one moment. */
export function topRows(overview: Overview, { sort, isReversed, filter }: TopState): readonly TopRow[] {
  const { rate } = overview
  const total = rate.redis + rate.local + rate.copies + rate.limited + rate.writes
  const wanted = filter.toLowerCase()
  const rows = overview.keys
    .filter(({ key, redisClusterId, ruleId }) =>
      [readableKey(key), redisClusterId, ruleId ?? ''].some((text) => text.toLowerCase().includes(wanted)),
    )
    .map((key) => {
      const ratePerSecond = rateAt(key, overview)
      return { key, ratePerSecond, share: total === 0 ? 0 : Math.min(1, ratePerSecond / total) }
    })
  const order = sort === 'name' ? byName : (a: TopRow, b: TopRow) => figure(b, sort) - figure(a, sort) || byName(a, b)
  rows.sort(order)
  return isReversed ? rows.reverse() : rows
}

/** One key with its figures of the second that the header is of. */
export interface TopRow {
  readonly key: KeyView
  readonly ratePerSecond: number
  readonly share: number
}

/**
 * The header's second is slightly in the past, because statuses arrive once a second: the key's rate is from that
 * second too.
 */
function rateAt({ sparkline, ratePerSecond }: KeyView, { rate, hubTime }: Overview): number {
  const newest = Math.floor(hubTime / 1000) - 1
  const back = newest - Math.floor(rate.at / 1000)
  return (back >= 0 && back < sparkline.length ? sparkline.at(-1 - back) : undefined) ?? ratePerSecond
}

function figure({ key, ratePerSecond, share }: TopRow, sort: Exclude<TopSort, 'name'>): number {
  switch (sort) {
    case 'rate':
      return ratePerSecond
    case 'share':
      return share
    case 'writes':
      return key.writesPerSecond
    case 'bytes':
      return key.bytesPerSecond
    case 'minute':
      return key.rates?.minute ?? key.ratePerSecond
  }
}

function byName(a: TopRow, b: TopRow): number {
  return a.key.key < b.key.key ? -1 : a.key.key > b.key.key ? 1 : a.key.redisClusterId < b.key.redisClusterId ? -1 : 1
}

export function idOf({ redisClusterId, key }: KeyName): string {
  return `${redisClusterId}\u0000${key}`
}

/** The chosen key, on the screen or not. */
export function chosenKey({ chosen }: Pick<TopState, 'chosen'>): KeyName | undefined {
  if (chosen === undefined) return undefined
  const end = chosen.indexOf('\u0000')
  return { redisClusterId: chosen.slice(0, end), key: chosen.slice(end + 1) }
}

/** The chosen row; undefined if there is none or it is gone. */
export function chosenRow(rows: readonly TopRow[], { chosen }: TopState): TopRow | undefined {
  return rows.find(({ key }) => idOf(key) === chosen)
}

/** What a pressed key does; `rows` are those on the screen. */
export function pressKey(state: TopState, key: string, rows: readonly TopRow[]): readonly [TopState, TopEffect] {
  if (key === '\u0003') return [state, { kind: 'end' }]
  switch (state.input.kind) {
    case 'filter':
    case 'limit':
      return typed(state, state.input, key)
    case 'confirm':
      return confirmed(state, state.input, key)
    case 'keys':
      return command({ ...state, note: '' }, key, rows)
  }
}

function command(state: TopState, key: string, rows: readonly TopRow[]): readonly [TopState, TopEffect] {
  switch (key) {
    case 'q':
      return [state, { kind: 'end' }]
    case '\u001b':
      return [state.isDetail ? { ...state, isDetail: false } : { ...state, filter: '', chosen: undefined }, none]
    case 's':
      return [{ ...state, sort: topSorts[(topSorts.indexOf(state.sort) + 1) % topSorts.length]! }, none]
    case 'r':
      return [{ ...state, isReversed: !state.isReversed }, none]
    case 'p':
    case ' ':
      return [{ ...state, isPaused: !state.isPaused }, none]
    case '/':
      return [{ ...state, input: { kind: 'filter', text: state.filter } }, none]
    case 'j':
    case '\u001b[B':
      return [moved(state, rows, 1), none]
    case 'k':
    case '\u001b[A':
      return [moved(state, rows, -1), none]
    case '\r':
      return [chosenRow(rows, state) === undefined ? state : { ...state, isDetail: !state.isDetail }, none]
    case 'c':
    case 'd':
    case 'i':
    case 'u':
    case 'l':
      return [asked(state, key), none]
    default:
      return [state, none]
  }
}

function asked(state: TopState, key: 'c' | 'd' | 'i' | 'u' | 'l'): TopState {
  if (state.chosen === undefined) return { ...state, note: 'choose a key first, with j and k' }
  if (key === 'l') return { ...state, input: { kind: 'limit', text: '' } }
  const action = ({ c: 'cache', d: 'copy', i: 'ignore', u: 'undo' } as const)[key]
  return { ...state, input: { kind: 'confirm', action } }
}

function typed(
  state: TopState,
  input: Extract<TopInput, { text: string }>,
  key: string,
): readonly [TopState, TopEffect] {
  if (key === '\u001b') return [{ ...state, input: typing, ...(input.kind === 'filter' && { filter: '' }) }, none]
  if (key === '\r') {
    if (input.kind === 'filter') return [{ ...state, input: typing }, none]
    const limit = Number(input.text)
    if (!(limit >= 1))
      return [{ ...state, input: typing, note: 'a limit must be a number of accesses per second' }, none]
    return [{ ...state, input: { kind: 'confirm', action: 'limit', limit } }, none]
  }
  const text = key === '\u007f' || key === '\b' ? input.text.slice(0, -1) : input.text + printable(key)
  const bounded = text.slice(0, 200)
  return [{ ...state, input: { ...input, text: bounded }, ...(input.kind === 'filter' && { filter: bounded }) }, none]
}

function confirmed(
  state: TopState,
  { action, limit }: Extract<TopInput, { kind: 'confirm' }>,
  key: string,
): readonly [TopState, TopEffect] {
  const next = { ...state, input: typing }
  const name = chosenKey(state)
  if (key !== 'y' || name === undefined) return [{ ...next, note: 'nothing was done' }, none]
  return [next, { kind: 'act', action, key: name, ...(limit !== undefined && { limit }) }]
}

function moved(state: TopState, rows: readonly TopRow[], step: 1 | -1): TopState {
  if (rows.length === 0) return state
  const place = rows.findIndex(({ key }) => idOf(key) === state.chosen)
  const next = place < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, place + step))
  return { ...state, chosen: idOf(rows[next]!.key) }
}

function printable(key: string): string {
  return [...key].filter((letter) => letter >= ' ' && letter !== '\u007f').join('')
}
