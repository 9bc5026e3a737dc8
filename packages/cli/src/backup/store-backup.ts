import { createHash } from 'node:crypto'
import { type AuditEntry, FirebreakError, type HistoryEvent, version } from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import type { HubStore } from '@firebreak/hub'

/**
 * A backup is lines of JSON: a head, one line for each thing that a store keeps, and an end with a digest of all lines
 * before it, so that a truncated or edited file is detected before anything is written.
 *
 * Not included: the table of hot keys, which a hub rebuilds within seconds; the positions in sources of changes,
 * because an old position would replay or miss changes; sessions, after which users sign in again.
 */
interface Head {
  readonly firebreak: 'backup'
  readonly format: number
  readonly version: string
  readonly madeAt: number
  readonly store: string
}

type Line =
  | { readonly kind: 'rule'; readonly rule: Rule }
  | { readonly kind: 'switch'; readonly isOff: boolean }
  | { readonly kind: 'policy'; readonly policy: Policy }
  | { readonly kind: 'record'; readonly of: string; readonly name: string; readonly value: string }
  | { readonly kind: 'job'; readonly job: Job }
  | { readonly kind: 'history'; readonly event: HistoryEvent }
  | { readonly kind: 'block'; readonly block: Block }
  | { readonly kind: 'audit'; readonly entry: AuditEntry }

type Policy = Awaited<ReturnType<HubStore['policiesAfter']>>[number]
type Job = Awaited<ReturnType<HubStore['jobs']>>[number]
type Block = Parameters<HubStore['saveBlock']>[0]

/** How many things of each kind there are. */
export type BackupCounts = Readonly<
  Record<Exclude<Line['kind'], 'record' | 'switch'> | (typeof recordKinds)[string], number>
>

/** The newest format that this version reads, and the one it writes. */
export const backupFormat = 1
/**
 * Kinds of records included: users' settings, and learned recurring heat. Other kinds are worthless in another store
 * (sessions and their secret, the last use of tokens); a test checks that all kinds are listed.
 */
export const recordKinds: Readonly<Record<string, 'tokens' | 'barred' | 'alerts' | 'settings' | 'forecasts'>> = {
  credential: 'tokens',
  barred: 'barred',
  'alert-routes': 'alerts',
  'alarm-notes': 'alerts',
  history: 'settings',
  'forecast-settings': 'settings',
  forecast: 'forecasts',
}
/** Kinds of records not included. */
export const recordKindsLeftOut = ['credential-use', 'session', 'csrf-secret', 'session-secret', 'session-ended']
/** No store keeps more of either. */
const everything = 1_000_000
/** The number of writes in flight at once. */
const step = 200

/** The file is not a backup, is damaged or too new, or the store cannot take it. */
export class BackupError extends FirebreakError {
  constructor(message: string) {
    super('FB_BACKUP', message)
  }
}

/** A store as the lines of a backup; history and audit oldest first. */
export async function backupLines(store: HubStore, madeAt: number): Promise<string[]> {
  const head: Head = { firebreak: 'backup', format: backupFormat, version, madeAt, store: store.name }
  const { rules, isOff } = await store.load()
  const lines: Line[] = rules.map((rule) => ({ kind: 'rule', rule }))
  lines.push({ kind: 'switch', isOff })
  for (const policy of await store.policiesAfter(0)) lines.push({ kind: 'policy', policy })
  for (const of of Object.keys(recordKinds)) {
    for (const [name, value] of await store.records(of)) lines.push({ kind: 'record', of, name, value })
  }
  for (const job of await store.jobs()) lines.push({ kind: 'job', job })
  for (const event of [...(await store.history({ limit: everything }))].reverse())
    lines.push({ kind: 'history', event })
  for (const { stepMs } of await store.keptBlocks()) {
    for (const block of await store.blocks(stepMs, 0, Number.MAX_SAFE_INTEGER)) lines.push({ kind: 'block', block })
  }
  for (const entry of [...(await store.audit(everything))].reverse()) lines.push({ kind: 'audit', entry })
  const texts = [head, ...lines].map((line) => JSON.stringify(line))
  return [...texts, JSON.stringify({ kind: 'end', lines: texts.length, sha256: digestOf(texts) })]
}

/** Writes a backup into a store that has no rules and no history; returns what was written. */
export async function restoreLines(
  store: HubStore,
  texts: readonly string[],
  { who, now }: { readonly who: string; readonly now: number },
): Promise<BackupCounts> {
  const { head, lines } = readBackup(texts)
  const [state, history] = [await store.load(), await store.history({ limit: 1 })]
  if (state.rules.length > 0 || history.length > 0) {
    throw new BackupError(
      `this ${store.name} store has ${state.rules.length} rules and ${history.length === 0 ? 'no' : 'a'} history already; ` +
        'restore into an empty one, so that nothing gets mixed up',
    )
  }
  const of = <Kind extends Line['kind']>(kind: Kind) =>
    lines.filter((line): line is Extract<Line, { kind: Kind }> => line.kind === kind)
  const writer = `restore ${head.madeAt} ${now}`
  const events = of('history').map(({ event }) => event)
  for (let at = 0; at < events.length; at += step) {
    await store.appendHistory(events.slice(at, at + step), { writer, number: at / step + 1 })
  }
  await inSteps(of('block'), ({ block }) => store.saveBlock(block))
  await inSteps(of('audit'), ({ entry }) => store.appendAudit(entry))
  await inSteps(of('record'), ({ of: kind, name, value }) => store.saveRecord(kind, name, value))
  await inSteps(of('job'), ({ job }) => store.saveJob(job))
  for (const { rule } of of('rule')) await store.saveRule(rule)
  for (const { isOff } of of('switch')) if (isOff) await store.saveSwitch(true)
  for (const [index, { policy }] of of('policy').entries()) {
    // A store counts its versions from 1; versions older than the kept ones are gone.
    const what = `restore version ${policy.version} of the policy`
    await store.addPolicy({ ...policy, version: index + 1 }, { at: now, who, what, before: null, after: null })
  }
  const counts = countsOf(lines)
  const what = `restore a backup of ${new Date(head.madeAt).toISOString()}`
  // The entries are rechained; their previous head can still be compared with one that was noted down.
  const { seq, hash } = of('audit').at(-1)?.entry ?? {}
  const auditHead = hash === undefined ? null : `${seq}:${hash}`
  await store.appendAudit({ at: now, who, what, before: null, after: { ...counts, auditHead } })
  return counts
}

/** Reads a whole backup; a file with any error is refused entirely. */
function readBackup(texts: readonly string[]): { head: Head; lines: Line[] } {
  const given = texts.filter((text) => text.trim() !== '')
  const [head, ...rest] = given.map(parseLine) as [Head | undefined, ...unknown[]]
  if (head?.firebreak !== 'backup')
    throw new BackupError('this is not a Firebreak backup: its first line does not say so')
  if (!(head.format <= backupFormat)) {
    throw new BackupError(
      `the backup was made by Firebreak ${head.version} in format ${head.format}; this is ${version} and reads up to ${backupFormat}. Restore it with that version`,
    )
  }
  const end = rest.pop() as { kind?: string; lines?: number; sha256?: string } | undefined
  if (end?.kind !== 'end') throw new BackupError('the backup has no end marker: it was truncated')
  const before = given.slice(0, -1)
  if (end.lines !== before.length || end.sha256 !== digestOf(before)) {
    throw new BackupError('the backup is damaged: its lines do not match its checksum')
  }
  return { head, lines: rest as Line[] }
}

function parseLine(text: string, index: number): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new BackupError(`line ${index + 1} of the backup is not JSON: it was truncated or damaged`)
  }
}

export function countsOf(lines: readonly { readonly kind: Line['kind']; readonly of?: string }[]): BackupCounts {
  const counts = {
    ...{ rule: 0, policy: 0, tokens: 0, barred: 0, job: 0, alerts: 0, settings: 0, forecasts: 0 },
    ...{ history: 0, block: 0, audit: 0 },
  }
  for (const { kind, of } of lines) {
    const sort = kind === 'record' ? recordKinds[of!] : kind
    if (sort !== undefined && sort in counts) counts[sort as keyof BackupCounts]++
  }
  return counts
}

function digestOf(texts: readonly string[]): string {
  return createHash('sha256').update(texts.join('\n')).digest('hex')
}

async function inSteps<T>(all: readonly T[], write: (one: T) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < all.length; at += step) await Promise.all(all.slice(at, at + step).map(write))
}
