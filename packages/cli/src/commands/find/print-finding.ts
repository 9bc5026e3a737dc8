import type { Finding, FoundKey, PrefixNode, ServerLoad, SlotLoad, TypeSummary } from '@firebreak/find'
import { formatBytes, formatCount, formatDuration, formatShare } from '../../output/format.ts'
import { type FlatRecord, type OutputFormat, renderCsv, renderNdjson } from '../../output/records.ts'
import { type Column, renderTable } from '../../output/table.ts'

const rank: Column<FoundKey> = { title: '#', text: (_key, index) => String(index + 1), align: 'right' }
const name: Column<FoundKey> = { title: 'key', text: ({ key }) => key, isFlexible: true }
const maybe = <Value>(value: Value | undefined, format: (value: Value) => string) =>
  value === undefined ? undefined : format(value)
const right = <Row>(title: string, text: Column<Row>['text']): Column<Row> => ({ title, text, align: 'right' })

const hotColumns: readonly Column<FoundKey>[] = [
  rank,
  name,
  { title: 'type', text: ({ type }) => type },
  right('accesses/s', (key) => rateOf(key)),
  right('accesses', ({ accesses }) => maybe(accesses, formatCount)),
  right('writes', ({ writes }) => maybe(writes, formatCount)),
  right('share', ({ share }) => maybe(share, formatShare)),
  right('counter', ({ frequency }) => maybe(frequency, String)),
  right('cpu', ({ cpuMicroseconds }) => maybe(cpuMicroseconds, (value) => `${formatCount(value)} µs`)),
  right('network', ({ networkBytes }) => maybe(networkBytes, formatBytes)),
  right('db', ({ database }) => (database ? String(database) : undefined)),
  right('slot', ({ slot, node }) => (node === undefined ? undefined : maybe(slot, String))),
  { title: 'node', text: ({ node }) => node },
  { title: 'commands', text: ({ commands }) => maybe(commands, commandText), isFlexible: true },
]

const bigColumns: readonly Column<FoundKey>[] = [
  rank,
  name,
  { title: 'type', text: ({ type }) => type },
  right('memory', ({ bytes }) => maybe(bytes, formatBytes)),
  right('elements', ({ elements, type }) => (type === 'string' || !elements ? undefined : formatCount(elements))),
  right('largest', ({ largestElementBytes }) => maybe(largestElementBytes, formatBytes)),
  { title: 'encoding', text: ({ encoding }) => encoding },
  right('ttl', ({ ttlMs }) => maybe(ttlMs, formatDuration)),
  right('field ttls', ({ fieldsWithTtl }) => maybe(fieldsWithTtl, formatCount)),
  right('idle', ({ idleSeconds }) => maybe(idleSeconds, (value) => formatDuration(value * 1000))),
  right('counter', ({ frequency }) => maybe(frequency, String)),
  right('db', ({ database }) => (database ? String(database) : undefined)),
  { title: 'node', text: ({ node }) => node },
]

const typeColumns: readonly Column<TypeSummary>[] = [
  { title: 'type', text: ({ type }) => type },
  right('keys', ({ keys }) => formatCount(keys)),
  right('memory', ({ bytes }) => formatBytes(bytes)),
  right('mean', ({ bytes, keys }) => formatBytes(bytes / keys)),
  right('elements', ({ elements }) => (elements === 0 ? undefined : formatCount(elements))),
  right('with ttl', ({ keysWithTtl }) => (keysWithTtl ? formatCount(keysWithTtl) : undefined)),
]

const nodeColumns: readonly Column<ServerLoad>[] = [
  { title: 'node', text: ({ node }) => node },
  right('slots', ({ slots }) => (slots === 0 ? undefined : formatCount(slots))),
  right('ops/s', ({ operationsPerSecond }) => formatCount(operationsPerSecond)),
  right('share', ({ share }) => formatShare(share)),
  right('× mean', ({ skew }) => skew.toFixed(2)),
  right('cpu', ({ cpuMicrosecondsPerSecond }) => maybe(cpuMicrosecondsPerSecond, (value) => formatShare(value / 1e6))),
  right('in/s', ({ bytesInPerSecond }) => maybe(bytesInPerSecond, formatBytes)),
  right('out/s', ({ bytesOutPerSecond }) => maybe(bytesOutPerSecond, formatBytes)),
  right('keys', ({ keys }) => maybe(keys, formatCount)),
]

const slotColumns: readonly Column<SlotLoad>[] = [
  right('slot', ({ slot }) => String(slot)),
  { title: 'node', text: ({ node }) => node },
  right('share', ({ share }) => formatShare(share)),
  right('ops/s', ({ operationsPerSecond }) => maybe(operationsPerSecond, formatCount)),
  right('cpu', ({ cpuMicrosecondsPerSecond }) => maybe(cpuMicrosecondsPerSecond, (value) => formatShare(value / 1e6))),
  right('bytes/s', ({ bytesPerSecond }) => maybe(bytesPerSecond, formatBytes)),
  right('keys', ({ keys }) => maybe(keys, formatCount)),
]

interface PrefixRow {
  readonly depth: number
  readonly node: PrefixNode
  readonly total: number
}

const prefixColumns: readonly Column<PrefixRow>[] = [
  { title: 'prefix', text: ({ depth, node }) => '  '.repeat(depth) + node.prefix, isFlexible: true },
  right('keys', ({ node }) => formatCount(node.keys)),
  right('memory', ({ node }) => formatBytes(node.bytes)),
  right('share', ({ node, total }) => formatShare(node.bytes / Math.max(1, total))),
  right('with ttl', ({ node }) => maybe(node.keysWithTtl, (count) => formatShare(count / Math.max(1, node.keys)))),
]

/** A finding in the requested format. */
export function renderFinding(finding: Finding, format: OutputFormat, width = 0): string {
  switch (format) {
    case 'json':
      return `${JSON.stringify(finding, null, 2)}\n`
    case 'ndjson':
      return renderNdjson(recordsOf(finding))
    case 'csv':
      return renderCsv(recordsOf(finding).map(flat))
    case 'table':
      return renderTables(finding, width)
  }
}

function renderTables(finding: Finding, width: number): string {
  const parts: string[] = []
  const section = <Row>(title: string, columns: readonly Column<Row>[], rows: readonly Row[]) => {
    if (rows.length > 0) parts.push(`${title}\n${renderTable(columns, rows, width)}`)
  }
  section('Nodes', nodeColumns, finding.nodes ?? [])
  section('Slots', slotColumns, finding.slots ?? [])
  if (finding.kind === 'big') {
    section('Biggest keys', bigColumns, finding.keys)
    for (const type of finding.types ?? []) {
      if ((finding.types ?? []).length > 1) section(`${type.type}: by memory`, bigColumns, type.byBytes)
      if (type.elements > type.keys) section(`${type.type}: by elements`, bigColumns, type.byElements)
    }
    section('Types', typeColumns, finding.types ?? [])
    if (finding.prefixes !== undefined) section('Prefixes', prefixColumns, prefixRows(finding.prefixes))
  } else {
    section('Hottest keys', hotColumns, finding.keys)
  }
  return parts.length === 0 ? 'Nothing was found.\n' : parts.join('\n')
}

function prefixRows(root: PrefixNode, most = 60): PrefixRow[] {
  const rows: PrefixRow[] = []
  const visit = (node: PrefixNode, depth: number) => {
    for (const child of node.children.slice(0, 12)) {
      if (rows.length >= most) return
      rows.push({ depth, node: child, total: root.bytes })
      visit(child, depth + 1)
    }
  }
  visit(root, 0)
  return rows
}

/** Every row of a finding, with the list that it belongs to. */
function recordsOf(finding: Finding): Record<string, unknown>[] {
  const listed = (list: string, keys: readonly FoundKey[]) =>
    keys.map((key, index) => ({ kind: finding.kind, method: finding.method, list, rank: index + 1, ...key }))
  return [
    ...(finding.nodes ?? []).map((node, index) => ({
      kind: finding.kind,
      method: finding.method,
      list: 'nodes',
      rank: index + 1,
      ...node,
    })),
    ...(finding.slots ?? []).map((slot, index) => ({
      kind: finding.kind,
      method: finding.method,
      list: 'slots',
      rank: index + 1,
      ...slot,
    })),
    ...listed('all', finding.keys),
    ...(finding.types ?? []).flatMap((type) => [
      ...listed(`${type.type}/bytes`, type.byBytes),
      ...listed(`${type.type}/elements`, type.byElements),
    ]),
  ]
}

function flat(record: Record<string, unknown>): FlatRecord {
  return Object.fromEntries(
    Object.entries(record).map(([field, value]) => [
      field,
      typeof value === 'object' && value !== null ? commandText(value as Record<string, number>) : value,
    ]),
  ) as FlatRecord
}

function commandText(commands: Readonly<Record<string, number>>): string {
  return Object.entries(commands)
    .map(([command, count]) => `${command} ${count}`)
    .join(' ')
}

function rateOf(key: FoundKey): string | undefined {
  if (key.accessesPerSecond === undefined) return undefined
  const rate = formatCount(key.accessesPerSecond)
  if (key.frequency === undefined) return rate
  return key.relativeError === undefined ? `≥ ${rate}` : `${rate} ± ${Math.round(key.relativeError * 100)} %`
}
