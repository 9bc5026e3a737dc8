import { parseArgs } from 'node:util'
import { type AuditEntry, type AuditHead, plainText } from '@firebreak/core'
import { AuditCheck, type AuditVerdict, formatHead, openStoreAt, parseHead } from '@firebreak/hub'
import { type Command, type CommandIo, UsageError } from '../command/command.ts'
import { placeOrder, storeOptions, storeOrHub } from '../connect/store-place.ts'
import { HubApi } from '../hub-api/hub-api.ts'
import { formatHelp, formatOptions, printRecords } from '../output/print-records.ts'
import type { Column } from '../output/table.ts'

const columns: readonly Column<AuditEntry>[] = [
  { title: 'NO', text: ({ seq }) => seq?.toString(), align: 'right' },
  { title: 'AT', text: ({ at }) => new Date(at).toISOString() },
  { title: 'WHO', text: ({ who }) => who },
  { title: 'WHAT', text: ({ what }) => what, isFlexible: true },
]

const options = {
  ...storeOptions,
  limit: { type: 'string', default: '200' },
  since: { type: 'string' },
  ...formatOptions,
} as const

type Values = ReturnType<typeof parseArgs<{ options: typeof options }>>['values']

/** A part of the audit, newest first, with the end of its chain. */
interface AuditPage {
  readonly entries: readonly AuditEntry[]
  readonly head: AuditHead | null
  readonly kept: number
}

interface AuditSource {
  page(limit: number, skip: number): Promise<AuditPage>
  close(): Promise<void>
}

const pageSize = 1000

export const audit: Command = {
  subcommands: ['list', 'verify'],
  flags: Object.keys(options),
  help: `Who changed what: rules, switch, pre-warming, limit policies, tokens, blocked processes. Each entry contains the
hash of the one before it; verify finds entries that were altered, removed, added or moved, and exits with 1.

Examples:
  firebreak audit
  firebreak audit verify
  firebreak audit verify --since 412:9f2c…    also check that entry 412 is unchanged
  firebreak audit verify --data-folder ./data    the store itself, without asking a hub

Anyone who can write to the store can also write a new chain: keep the head that verify prints elsewhere, and pass it next time.

Options:
  --since NO:HASH       a head printed by an earlier verify
  --limit COUNT         entries to list (default 200)
  --data-folder DIR     read this store, without asking a hub (env FIREBREAK_HUB_DATA_FOLDER)
  --store-url URL       the same on a Redis (env FIREBREAK_HUB_STORE_URL, or …_FILE for a file)
  --hub URL             the hub (env FIREBREAK_HUB; default: the running "firebreak up")
${formatHelp}
${placeOrder}`,
  async run(args, io) {
    const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options })
    const [action = 'list'] = positionals
    if (action !== 'list' && action !== 'verify') throw new UsageError('usage: firebreak audit [list | verify]')
    const since = parseHead(values.since)
    if (values.since !== undefined && since === undefined) {
      throw new UsageError('--since must be a head as printed by verify, NO:HASH')
    }
    const limit = Number(values.limit)
    if (!Number.isInteger(limit) || limit < 1 || limit > 10_000)
      throw new UsageError('--limit must be a number from 1 to 10000')
    const source = await sourceOf(values, io)
    try {
      if (action === 'verify') return print(await verify(source, since), values, io)
      printRecords(io, values, columns, (await source.page(limit, 0)).entries, 'Nothing has been changed yet.')
      return 0
    } finally {
      await source.close()
    }
  },
}

async function sourceOf(values: Values, io: CommandIo): Promise<AuditSource> {
  const place = storeOrHub(values, io)
  if (place === undefined) {
    const api = HubApi.of(values.hub, io)
    return {
      page: (limit, skip) => api.call<AuditPage>('GET', `/v1/audit?limit=${limit}&skip=${skip}`),
      close: async () => {},
    }
  }
  const store = await openStoreAt(place)
  return {
    async page(limit, skip) {
      const { head = null, kept } = await store.auditEnd()
      return { head, kept, entries: await store.audit(limit, skip) }
    },
    close: () => store.close(),
  }
}

/** Reads the audit page by page; entries added meanwhile shift the pages, which the heads show. */
async function verify(source: AuditSource, since: AuditHead | undefined): Promise<AuditVerdict> {
  const first = await source.page(pageSize, 0)
  const check = new AuditCheck({ head: first.head ?? undefined, kept: first.kept, since })
  let [page, read, shift] = [first, 0, 0]
  for (;;) {
    const shiftNow = (page.head?.seq ?? 0) - (first.head?.seq ?? 0)
    const fresh = page.entries.slice(Math.max(0, shiftNow - shift))
    shift = shiftNow
    for (const entry of fresh) check.add(entry)
    read += fresh.length
    if (page.entries.length < pageSize) return check.end()
    page = await source.page(pageSize, read + shift)
  }
}

function print(verdict: AuditVerdict, values: Values, { stdout }: CommandIo): number {
  const { head, count, unchained, trimmed, faults, faultCount } = verdict
  if (values.json) stdout.write(`${JSON.stringify(verdict)}\n`)
  else {
    for (const { text } of faults) stdout.write(`${plainText(text)}\n`)
    if (faultCount > faults.length) stdout.write(`… and ${faultCount - faults.length} more\n`)
    const notes = [
      trimmed > 0 ? `; entries up to ${trimmed} were dropped, the store keeps no more` : '',
      unchained > 0 ? `; ${unchained} at the old end come from a version without a chain` : '',
    ]
    const result = faultCount === 0 ? 'the chain is intact' : `${faultCount} faults: the audit was tampered with`
    stdout.write(`${count} entries checked: ${result}${notes.join('')}\n`)
    if (head !== undefined) stdout.write(`head ${formatHead(head)}\n`)
  }
  return faultCount === 0 ? 0 : 1
}
