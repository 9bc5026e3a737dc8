import { type KeyView, type Overview, readableKey } from '@firebreak/core'
import { plainText } from '../output/plain-text.ts'

/** The terminal that is drawn on. */
export interface Screen {
  readonly columns: number
  readonly rows: number
  readonly isColored: boolean
}

const bars = '▁▂▃▄▅▆▇█'
const colors = { hot: 31, warming: 33, cooling: 34, cold: 90 } as const

/** One screen of `firebreak top`: the verdict, the traffic, a line a key. */
export function renderTop(overview: Overview, screen: Screen): string {
  const { rate } = overview
  const reads = rate.redis + rate.local + rate.copies
  const localShare = reads === 0 ? 0 : rate.local / reads
  const lines = [
    bold(plainText(overview.verdict), screen),
    `reads ${count(reads)}/s   Redis ${count(rate.redis)}/s   memory ${percent(localShare)}   writes ${count(rate.writes)}/s   limited ${count(rate.limited)}/s   sensors ${overview.sensors.connected}`,
    ...overview.alarms.map((alarm) => color(`! ${plainText(alarm.cause)}`, 31, screen)),
    '',
    header,
    ...overview.keys.map((key) => line(key, screen)),
  ]
  const visible = lines.slice(0, Math.max(6, screen.rows - 1))
  return `${visible.map((text) => cut(text, screen)).join('\n')}\n`
}

const header = `${'KEY'.padEnd(28)} ${'RATE/S'.padStart(9)} ${'SHARE'.padStart(7)}  ${'LAST'.padEnd(12)} ${'STATE'.padEnd(8)} ${'HANDLED BY'.padEnd(14)} WHY`

function line(key: KeyView, screen: Screen): string {
  const cells = [
    fit(plainText(readableKey(key.key)), 28),
    count(key.ratePerSecond).padStart(9),
    percent(key.share).padStart(7),
    '',
    spark(key.sparkline.slice(-12)).padEnd(12),
    color(key.state.padEnd(8), colors[key.state], screen),
    (key.strategy?.strategy ?? '–').padEnd(14),
    plainText(key.reason),
  ]
  return cells.join(' ').replace('  ', ' ')
}

function spark(values: readonly number[]): string {
  const highest = Math.max(...values, 1)
  return values.map((value) => bars[Math.min(bars.length - 1, Math.floor((value / highest) * bars.length))]).join('')
}

function fit(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 1)}…` : text.padEnd(width)
}

function cut(text: string, screen: Screen): string {
  // Colour codes take no column: a coloured line is cut by what is seen of it.
  let seen = 0
  let index = 0
  while (index < text.length && seen < screen.columns) {
    const code = text.slice(index).match(/^\u001b\[\d+m/)?.[0]
    if (code !== undefined) index += code.length
    else {
      index++
      seen++
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
