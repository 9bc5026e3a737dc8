import { type KeyDetail, type Overview, plainText, readableKey } from '@firebreak/core'
import { type HubShare, processesText } from '../hub-api/other-hubs.ts'
import { handledBy } from '../output/handled-by.ts'
import { cutMiddle, fitText, widthOf } from '../output/text-width.ts'
import { chosenKey, chosenRow, idOf, initialTop, type TopRow, type TopState, topRows } from './top-state.ts'

/** The terminal that is drawn on. */
export interface Screen {
  readonly columns: number
  readonly rows: number
  readonly isColored: boolean
}

const clusterWidth = 10
const bars = '▁▂▃▄▅▆▇█'
const colors = { hot: 31, warming: 33, cooling: 34, cold: 90 } as const
const help =
  'j/k choose  enter detail  s sort  r reverse  / filter  c cache  d copy  l limit  i ignore  u undo  p pause  q quit'

/** The hub no longer answers: its last figures are shown, without a verdict. */
export interface LostHub {
  /** When it last answered. */
  readonly heardAt: Date
  readonly message: string
}

/** What there is to say about the hub itself. */
export interface TopNotes {
  readonly lost?: LostHub | undefined
  /** It is one of several. */
  readonly share?: HubShare | undefined
}

/**
 * One screen of `firebreak top`: the verdict, the traffic, one line per key, or one key in detail; all from the same
 * second.
 */
export function renderTop(
  overview: Overview,
  screen: Screen,
  state: TopState = initialTop,
  detail?: KeyDetail,
  { lost, share }: TopNotes = {},
): string {
  const { rate } = overview
  const reads = rate.redis + rate.local + rate.copies
  const localShare = reads === 0 ? 0 : rate.local / reads
  const rows = topRows(overview, state)
  const chosen = chosenRow(rows, state)
  const status = statusOf(state)
  const head = [
    ...wrap(lost === undefined ? plainText(overview.verdict) : lostText(lost), screen).map((text) =>
      lost === undefined ? bold(text, screen) : color(text, 31, screen),
    ),
    `reads ${count(reads)}/s   Redis ${count(rate.redis)}/s   memory ${percent(localShare)}   writes ${count(rate.writes)}/s   limited ${count(rate.limited)}/s   sensors ${overview.sensors.connected}`,
    ...(share === undefined ? [] : wrap(shareText(share), screen)),
    ...overview.alarms.flatMap((alarm) =>
      wrap(`! ${plainText(alarm.cause)}`, screen).map((text) => color(text, 31, screen)),
    ),
    ...(status === '' ? [] : [color(status, 36, screen)]),
    '',
  ]
  const hasClusters = new Set(overview.keys.map(({ redisClusterId }) => redisClusterId)).size > 1
  const body =
    state.isDetail && chosen !== undefined
      ? detailLines(chosen, detail)
      : [
          headerOf(state, hasClusters),
          ...windowOf(rows, state, screen.rows - head.length - 2).map((row) => line(row, state, screen, hasClusters)),
        ]
  const visible = [...head, ...body].slice(0, Math.max(6, screen.rows - 1))
  return `${visible.map((text) => cut(text, screen)).join('\n')}\n`
}

function lostText({ heardAt, message }: LostHub): string {
  return `Unknown: figures of ${timeOf(heardAt)}, trying again; ${plainText(message)}`
}

function shareText({ hubId, hubs, otherProcesses }: HubShare): string {
  return `hub ${plainText(hubId)}, one of ${hubs}: reads, writes and sensors are those of its own processes; ${processesText(otherProcesses)} to the others`
}

/** The key bindings, for the last line of an interactive screen. */
export function helpLine(screen: Screen): string {
  return cut(color(help, 90, screen), screen)
}

function statusOf(state: TopState): string {
  const { filter, sort, isReversed, isPaused, input, note } = state
  const name = plainText(readableKey(chosenKey(state)?.key ?? ''))
  switch (input.kind) {
    case 'filter':
      return `filter: ${plainText(input.text)}_`
    case 'limit':
      return `limit ${name} to how many accesses a second? ${plainText(input.text)}_`
    case 'confirm':
      return input.action === 'undo'
        ? `undo what is in force for ${name}? y/n`
        : `${input.action} ${name}${input.limit === undefined ? '' : ` to ${input.limit}/s`} for ten minutes? y/n`
    case 'keys': {
      const parts = [
        isPaused ? 'paused' : '',
        filter === '' ? '' : `filter "${plainText(filter)}"`,
        sort === 'rate' && !isReversed ? '' : `by ${sort}${isReversed ? ', reversed' : ''}`,
        note,
      ]
      return parts.filter((part) => part !== '').join('   ')
    }
  }
}

/** The rows that fit, with the chosen one among them. */
function windowOf(rows: readonly TopRow[], { chosen }: TopState, height: number): readonly TopRow[] {
  const room = Math.max(1, height)
  const place = rows.findIndex(({ key }) => idOf(key) === chosen)
  const first = Math.max(0, Math.min(place - room + 1, rows.length - room))
  return rows.slice(place < room ? 0 : first, (place < room ? 0 : first) + room)
}

/** Room for the mark of the chosen row, if any. */
const marginOf = ({ chosen }: TopState) => (chosen === undefined ? '' : '  ')

function headerOf(state: TopState, hasClusters: boolean): string {
  const { sort } = state
  const mark = (title: string, of: TopState['sort']) => (sort === of ? `${title}↓` : title)
  const cluster = hasClusters ? `${'CLUSTER'.padEnd(clusterWidth)} ` : ''
  return `${marginOf(state)}${mark('KEY', 'name').padEnd(28)} ${cluster}${mark('RATE/S', 'rate').padStart(9)} ${mark('SHARE', 'share').padStart(7)}  ${'LAST'.padEnd(12)} ${'STATE'.padEnd(8)} ${'HANDLED BY'.padEnd(14)} WHY`
}

function line({ key, ratePerSecond, share }: TopRow, state: TopState, screen: Screen, hasClusters: boolean): string {
  const cells = [
    fitText(plainText(readableKey(key.key)), 28, cutMiddle),
    ...(hasClusters ? [fitText(plainText(key.redisClusterId), clusterWidth, cutMiddle)] : []),
    count(ratePerSecond).padStart(9),
    percent(share).padStart(7),
    '',
    spark(key.sparkline.slice(-12)).padEnd(12),
    color(key.state.padEnd(8), colors[key.state], screen),
    (handledBy(key) ?? '–').padEnd(14),
    plainText(key.reason),
  ]
  const text = cells.join(' ').replace('  ', ' ')
  return idOf(key) === state.chosen
    ? `${screen.isColored ? '\u001b[7m' : ''}> ${text}${screen.isColored ? '\u001b[0m' : ''}`
    : marginOf(state) + text
}

/** Everything about one key. */
function detailLines({ key, ratePerSecond, share }: TopRow, detail: KeyDetail | undefined): string[] {
  const { rates, effect } = key
  const field = (name: string, value: string) => `${name.padEnd(12)} ${value}`
  return [
    field('key', plainText(readableKey(key.key))),
    field(
      'cluster',
      `${plainText(key.redisClusterId)}   slot ${key.slot}${key.node ? `   node ${plainText(key.node)}` : ''}`,
    ),
    field('rate', `${count(ratePerSecond)}/s   ${percent(share)} of all   ± ${count(key.errorPerSecond)}`),
    ...(rates === undefined
      ? []
      : [field('over', `1 s ${count(rates.second)}   10 s ${count(rates.tenSeconds)}   1 min ${count(rates.minute)}`)]),
    field('writes', `${count(key.writesPerSecond)}/s   ${count(key.bytesPerSecond)} bytes/s`),
    field('last minute', spark(key.sparkline.slice(-59))),
    field('state', `${key.state}${key.handling ? `, ${key.handling}` : ''}   rule ${plainText(key.ruleId ?? '–')}`),
    field('strategy', strategyText(key)),
    field('why', plainText(key.reason)),
    ...(effect === null
      ? []
      : [
          field(
            'effect',
            `Redis ${count(effect.redisPerSecondNow)}/s, without it ${count(Math.max(key.ratePerSecond, effect.redisPerSecondNow))}/s   memory ${percent(effect.localHitRate)}`,
          ),
        ]),
    field('services', plainText((key.services ?? []).join(', ') || '–')),
    ...(detail?.topHosts ?? [])
      .slice(0, 5)
      .map(({ hostId, serviceId, ratePerSecond: rate }) =>
        field('', `${plainText(`${serviceId} ${hostId}`)}  ${count(rate)}/s`),
      ),
    ...(detail?.events ?? [])
      .slice(0, 8)
      .map(({ at, kind, text }) => field(timeOf(new Date(at)), `${kind}: ${plainText(text)}`)),
  ]
}

function spark(values: readonly number[]): string {
  const highest = Math.max(...values, 1)
  return values.map((value) => bars[Math.min(bars.length - 1, Math.floor((value / highest) * bars.length))]).join('')
}

/** Wraps a sentence to the terminal's width, so that an error is not cut off. */
function wrap(text: string, { columns }: Screen): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last === undefined || widthOf(last) + 1 + widthOf(word) > columns) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

/** In the viewer's local time. */
function timeOf(date: Date): string {
  return date.toLocaleTimeString('en-GB', { hour12: false })
}

function cut(text: string, screen: Screen): string {
  // Colour codes take no columns: a coloured line is cut by its visible text.
  let seen = 0
  let index = 0
  while (index < text.length && seen < screen.columns) {
    const code = text.slice(index).match(/^\u001b\[\d+m/)?.[0]
    if (code !== undefined) index += code.length
    else {
      const sign = String.fromCodePoint(text.codePointAt(index)!)
      if (seen + widthOf(sign) > screen.columns) break
      index += sign.length
      seen += widthOf(sign)
    }
  }
  const rest = text.slice(index).match(/^\u001b\[0m/)?.[0] ?? ''
  return text.slice(0, index) + rest + (screen.isColored && text.length > index ? '\u001b[0m' : '')
}

function count(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)}%`
}

function color(text: string, code: number, screen: Screen): string {
  return screen.isColored ? `\u001b[${code}m${text}\u001b[0m` : text
}

function bold(text: string, screen: Screen): string {
  return color(text, 1, screen)
}

function strategyText({ strategy, carrier }: TopRow['key']): string {
  const name = strategy?.strategy ?? '–'
  if (carrier === 'reports') return `${name}, which nobody carries out: its services only send reports`
  return carrier === 'table' ? `${name}, by programs that read /v1/table` : name
}
