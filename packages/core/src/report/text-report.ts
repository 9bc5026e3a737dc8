import { keyText, parseKeyText } from '../keys/key-text.ts'
import { type Report, type ReportEntry, ReportRefusedError, type ReportSection } from './report.ts'

/**
 * The text form of a report, which any language can write:
 *
 *     # collectTs,sendTs,serviceId,hostId[,instanceId][,interval=milliseconds]
 *     # redisClusterId
 *     key:count,key:count
 *
 * Version 2 adds the instance to the first line and allows `key:count:writes:bytes`. Keys and ids are percent-encoded.
 * Lines that begin with `#` may also use the full-width characters `＃` and `，`, as Chinese input methods write them. A
 * report is accepted or refused as a whole: a partly accepted one would count some keys twice when it is resent.
 */
export type TextReportVersion = 1 | 2

/** The longest window of a rule. */
const maxIntervalMs = 3_600_000
const intervalName = 'interval='
const digits = /^\d{1,15}$/

/** Parses a text report; throws `ReportRefusedError` with the line and the reason. */
export function parseTextReport(text: string, version: TextReportVersion = 1): Report {
  const lines = text.split(/\r?\n/)
  const header = parseHeader(lines[0] ?? '', version)
  const sections: { redisClusterId: string; entries: ReportEntry[] }[] = []
  for (let index = 1; index < lines.length; index++) {
    const line = lines[index]!.trim()
    if (line === '') continue
    if (/^[#＃]/.test(line)) {
      const redisClusterId = parseKeyText(line.slice(1).trim())
      if (!redisClusterId) throw refused(index, 'a redisClusterId must follow "#"')
      sections.push({ redisClusterId, entries: [] })
      continue
    }
    const section = sections.at(-1)
    if (section === undefined) throw refused(index, 'there are entries before the first "# redisClusterId" line')
    for (const entry of line.split(',')) section.entries.push(parseEntry(entry.trim(), index, version))
  }
  return { ...header, sections }
}

/** Writes a report as text. */
export function formatTextReport(report: Report, version: TextReportVersion = 1): string {
  const ids = version === 1 ? [report.serviceId, report.hostId] : [report.serviceId, report.hostId, report.instanceId]
  const lines = [`# ${[report.collectTs, report.sendTs, ...ids.map(keyText)].join(',')}`]
  for (const section of report.sections) {
    lines.push(`# ${keyText(section.redisClusterId)}`)
    const entries = section.entries.map(({ key, count, writes, bytes }) =>
      version === 1 ? `${keyText(key)}:${count}` : `${keyText(key)}:${count}:${writes}:${bytes}`,
    )
    // Some twenty per line: readable, and no reader gets a line of megabytes.
    for (let index = 0; index < entries.length; index += 20) lines.push(entries.slice(index, index + 20).join(','))
  }
  return `${lines.join('\n')}\n`
}

function refused(lineIndex: number, reason: string): ReportRefusedError {
  return new ReportRefusedError('unparsable', `report refused, line ${lineIndex + 1}: ${reason}`, lineIndex + 1)
}

function parseHeader(line: string, version: TextReportVersion): Omit<Report, 'sections'> {
  if (!/^[#＃]/.test(line)) throw refused(0, 'the first line must be "# collectTs,sendTs,serviceId,hostId"')
  const fields = line
    .slice(1)
    .split(/[,，]/)
    .map((field) => field.trim())
  const wanted = version === 1 ? 4 : 5
  const intervalMs = takeInterval(fields)
  if (fields.length !== wanted)
    throw refused(0, `the first line has ${fields.length} fields, version ${version} has ${wanted}`)
  const [collectTs, sendTs, ...ids] = fields as [string, string, ...string[]]
  const names = ['serviceId', 'hostId', 'instanceId']
  const parsed = ids.map((id, index) => {
    const name = parseKeyText(id)
    if (!name) throw refused(0, `${names[index]} is ${id === '' ? 'empty' : 'not percent-encoded text'}`)
    return name
  })
  return {
    collectTs: parseTime(collectTs, 'collectTs'),
    sendTs: parseTime(sendTs, 'sendTs'),
    serviceId: parsed[0]!,
    hostId: parsed[1]!,
    instanceId: parsed[2] ?? parsed[1]!,
    ...(intervalMs > 0 && { intervalMs }),
  }
}

/**
 * Takes the interval off the end of the first line's fields; 0 if it is missing. An id may contain `=`, but not begin
 * like the interval: otherwise a process that omitted its id would report a minute's counts as those of a moment.
 */
function takeInterval(fields: string[]): number {
  const last = fields.at(-1)!
  if (fields.length < 5 || !last.startsWith(intervalName)) return 0
  const text = last.slice(intervalName.length)
  if (!/^\d{1,9}$/.test(text) || Number(text) > maxIntervalMs)
    throw refused(0, `interval is "${shorten(text)}"; it must be milliseconds, ${maxIntervalMs} at most`)
  fields.pop()
  return Number(text)
}

function parseTime(text: string, name: string): number {
  if (!digits.test(text)) throw refused(0, `${name} is "${text}"; it must be milliseconds since 1970`)
  const time = Number(text)
  if (time >= 1e9 && time < 1e10) throw refused(0, `${name} is "${text}", which is seconds; it must be milliseconds`)
  return time
}

function parseEntry(text: string, lineIndex: number, version: TextReportVersion): ReportEntry {
  const fields = text.split(':')
  const isFull = version === 2 && fields.length === 4
  if (fields.length !== 2 && !isFull) {
    const form = version === 1 ? 'key:count' : 'key:count or key:count:writes:bytes'
    throw refused(lineIndex, `"${shorten(text)}" is not ${form} (write ":" inside a key as %3A)`)
  }
  const key = parseKeyText(fields[0]!)
  if (key === undefined) throw refused(lineIndex, `the key "${shorten(fields[0]!)}" is not percent-encoded text`)
  const numbers = fields.slice(1).map((field, index) => {
    if (!digits.test(field)) {
      throw refused(
        lineIndex,
        `the ${['count', 'writes', 'bytes'][index]} of "${shorten(fields[0]!)}" is "${shorten(field)}"`,
      )
    }
    return Number(field)
  })
  const [count = 0, writes = 0, bytes = 0] = numbers
  if (writes > count)
    throw refused(lineIndex, `"${shorten(fields[0]!)}" has more writes (${writes}) than accesses (${count})`)
  return { key, count, writes, bytes }
}

function shorten(text: string): string {
  return text.length > 40 ? `${text.slice(0, 37)}…` : text
}

/** The sum of a section's counts. */
export function sectionTotal(section: ReportSection): number {
  return section.totalCount ?? section.entries.reduce((sum, entry) => sum + entry.count, 0)
}
