import type { HeatReport, HistoryRow, HotEpisode, ReportGroup, ReportKey } from '@firebreak/core'

const dayMs = 86_400_000
/** Keys of a report. */
const maxKeys = 1000

/** The period of a report: a day or a week of UTC. */
export interface ReportPeriod {
  readonly by: 'day' | 'week'
  readonly name: string
  readonly from: number
  readonly to: number
}

/** Parses the day `2026-11-17` or the week `2026-W47`; undefined if there is no such period. */
export function reportPeriod(by: 'day' | 'week', on: string): ReportPeriod | undefined {
  const from = by === 'day' ? startOfDay(on) : startOfWeek(on)
  if (from === undefined) return undefined
  return { by, name: on, from, to: from + (by === 'day' ? dayMs : 7 * dayMs) }
}

/** The name of the day or week that a moment lies in. */
export function periodName(by: 'day' | 'week', at: number): string {
  if (by === 'day') return new Date(at).toISOString().slice(0, 10)
  const monday = mondayOf(at)
  // A week belongs to the year that has its Thursday.
  const year = new Date(monday + 3 * dayMs).getUTCFullYear()
  const week = Math.round((monday - mondayOf(Date.UTC(year, 0, 4))) / (7 * dayMs)) + 1
  return `${year}-W${String(week).padStart(2, '0')}`
}

function mondayOf(at: number): number {
  const day = Math.floor(at / dayMs) * dayMs
  return day - ((new Date(day).getUTCDay() + 6) % 7) * dayMs
}

function startOfDay(on: string): number | undefined {
  const at = /^\d{4}-\d\d-\d\d$/.test(on) ? Date.parse(`${on}T00:00:00Z`) : Number.NaN
  return Number.isFinite(at) && periodName('day', at) === on ? at : undefined
}

function startOfWeek(on: string): number | undefined {
  const [, year, week] = /^(\d{4})-W(\d\d)$/.exec(on) ?? []
  if (year === undefined) return undefined
  const monday = mondayOf(Date.UTC(Number(year), 0, 4)) + (Number(week) - 1) * 7 * dayMs
  return periodName('week', monday) === on ? monday : undefined
}

export interface ReportParts {
  readonly period: ReportPeriod
  readonly now: number
  /** Rows by key over the period. */
  readonly rows: readonly HistoryRow[]
  readonly totals: {
    readonly accesses: number
    readonly writes: number
    readonly bytes: number
    readonly saved: number
  }
  /** The fraction of the period for which there is data. */
  readonly coverage: number
  /** Episodes of the seven days up to the end of the period. */
  readonly episodes: readonly HotEpisode[]
}

/** Adds up what was hot in a period, and what it saved. */
export function heatReport({ period, now, rows, totals, coverage, episodes }: ReportParts): HeatReport {
  const { by, name, from, to } = period
  const until = Math.min(to, now)
  const byKey = new Map(rows.map((row) => [`${row.redisClusterId}\u0000${row.name}`, row]))
  const inPeriod = episodes.filter(
    (episode) => !episode.isShadow && episode.detectedAt < until && (episode.cooledAt ?? until) > from,
  )
  const grouped = new Map<string, HotEpisode[]>()
  for (const episode of inPeriod) {
    const id = `${episode.redisClusterId}\u0000${episode.key}`
    const known = grouped.get(id)
    if (known === undefined) grouped.set(id, [episode])
    else known.push(episode)
  }
  const keys = [...grouped].map(([id, of]) => reportKey(of, byKey.get(id), from, until))
  keys.sort((a, b) => b.hotMs - a.hotMs || b.accesses - a.accesses || (a.key < b.key ? -1 : 1))
  const reads = totals.accesses - totals.writes
  const falseAlarms = keys.reduce((sum, key) => sum + key.falseAlarms, 0)
  const savedShare = reads <= 0 ? 0 : Math.min(1, totals.saved / reads)
  return {
    by,
    name,
    from,
    to,
    coverage,
    totals: { ...totals, keys: keys.length, episodes: inPeriod.length, falseAlarms, savedShare },
    keys: keys.slice(0, maxKeys),
    services: groups(keys, ({ services }) => services),
    rules: groups(keys, ({ ruleIds }) => ruleIds),
    recurring: recurring(episodes, to, now),
    previous: periodName(by, from - 1),
    next: to > now ? null : periodName(by, to),
  }
}

function reportKey(
  episodes: readonly HotEpisode[],
  row: HistoryRow | undefined,
  from: number,
  until: number,
): ReportKey {
  const { redisClusterId, key } = episodes[0]!
  const spans = episodes.map(({ detectedAt, cooledAt }) => [
    Math.max(from, detectedAt),
    Math.min(until, cooledAt ?? until),
  ])
  const isUseless = (episode: HotEpisode) =>
    episode.end === 'rollback' ||
    (episode.end === 'cooled' && isActed(episode) && episode.handledAt === null && (row?.saved ?? 0) === 0)
  return {
    redisClusterId,
    key,
    services: [...new Set([...(row?.services ?? []), ...episodes.flatMap(({ services }) => services)])].sort(),
    ruleIds: [...new Set(episodes.map(({ ruleId }) => ruleId))].sort(),
    episodes: episodes.length,
    hotMs: spans.reduce((sum, [start, end]) => sum + Math.max(0, end! - start!), 0),
    accesses: row?.accesses ?? 0,
    writes: row?.writes ?? 0,
    bytes: row?.bytes ?? 0,
    saved: row?.saved ?? 0,
    share: row?.share ?? 0,
    peakPerSecond: row?.peakPerSecond ?? 0,
    peakAt: row?.peakAt ?? spans[0]![0]!,
    falseAlarms: episodes.filter(isUseless).length,
    days: new Set(spans.flatMap(([start, end]) => daysOf(start!, end!))).size,
  }
}

/** A strategy was due, and a process was connected to carry it out. */
function isActed({ strategies, deliveredAt }: HotEpisode): boolean {
  return deliveredAt !== null && strategies.some((name) => name === 'LocalCache' || name === 'RedundantKeys')
}

function groups(keys: readonly ReportKey[], namesOf: (key: ReportKey) => readonly string[]): ReportGroup[] {
  const sums = new Map<string, { -readonly [Field in keyof ReportGroup]: ReportGroup[Field] }>()
  for (const key of keys) {
    for (const name of namesOf(key)) {
      const sum = sums.get(name) ?? { name, keys: 0, episodes: 0, hotMs: 0, saved: 0, falseAlarms: 0 }
      sums.set(name, sum)
      sum.keys++
      sum.episodes += key.episodes
      sum.hotMs += key.hotMs
      sum.saved += key.saved
      sum.falseAlarms += key.falseAlarms
    }
  }
  return [...sums.values()].sort((a, b) => b.hotMs - a.hotMs || (a.name < b.name ? -1 : 1))
}

function recurring(episodes: readonly HotEpisode[], to: number, now: number): HeatReport['recurring'] {
  const until = Math.min(to, now)
  const days = new Map<string, { redisClusterId: string; key: string; days: Set<string> }>()
  for (const { redisClusterId, key, detectedAt, cooledAt, isShadow } of episodes) {
    const start = Math.max(detectedAt, to - 7 * dayMs)
    if (isShadow || start >= until) continue
    const id = `${redisClusterId}\u0000${key}`
    const found = days.get(id) ?? { redisClusterId, key, days: new Set() }
    days.set(id, found)
    for (const day of daysOf(start, Math.min(until, cooledAt ?? until))) found.days.add(day)
  }
  return [...days.values()]
    .filter((found) => found.days.size >= 2)
    .map((found) => ({ ...found, days: [...found.days].sort() }))
    .sort((a, b) => b.days.length - a.days.length || (a.key < b.key ? -1 : 1))
    .slice(0, maxKeys)
}

function daysOf(start: number, end: number): string[] {
  const names: string[] = []
  for (let day = Math.floor(start / dayMs) * dayMs; day <= Math.max(start, end - 1); day += dayMs)
    names.push(periodName('day', day))
  return names
}

const columns = [
  ['cluster', ({ redisClusterId }: ReportKey) => redisClusterId],
  ['key', ({ key }: ReportKey) => key],
  ['services', ({ services }: ReportKey) => services.join(' ')],
  ['rules', ({ ruleIds }: ReportKey) => ruleIds.join(' ')],
  ['episodes', ({ episodes }: ReportKey) => episodes],
  ['hot_seconds', ({ hotMs }: ReportKey) => Math.round(hotMs / 1000)],
  ['peak_per_second', ({ peakPerSecond }: ReportKey) => peakPerSecond],
  ['peak_at', ({ peakAt }: ReportKey) => new Date(peakAt).toISOString()],
  ['accesses', ({ accesses }: ReportKey) => accesses],
  ['share', ({ share }: ReportKey) => share.toFixed(4)],
  ['saved_reads', ({ saved }: ReportKey) => saved],
  ['bytes', ({ bytes }: ReportKey) => bytes],
  ['false_alarms', ({ falseAlarms }: ReportKey) => falseAlarms],
  ['days', ({ days }: ReportKey) => days],
] as const

/** A line a key, for spreadsheets. */
export function reportCsv({ keys }: HeatReport): string {
  const lines = [columns.map(([name]) => name), ...keys.map((key) => columns.map(([, cell]) => csvCell(cell(key))))]
  return `${lines.map((cells) => cells.join(',')).join('\r\n')}\r\n`
}

/** A cell that begins like a formula would be run by the spreadsheet that opens it. */
function csvCell(value: string | number): string {
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
