import { addressOf } from '../shell/route.ts'

/** A page and what it is called; the title is English, shown through `t`. */
export interface AlarmPlace {
  readonly address: string
  readonly title: string
}

/** By the beginning of an alarm's id, up to its first `:`. */
const places: Readonly<Record<string, readonly [page: string, title: string]>> = {
  limits: ['limits', 'Limits'],
  locks: ['locks', 'Locks'],
  ids: ['ids', 'Ids'],
  sale: ['sale', 'Sale'],
  'hot-keys': ['rules', 'Rules'],
  'report-interval': ['rules', 'Rules'],
  'rules-newer': ['rules', 'Rules'],
  'rules-diverged': ['audit', 'Audit'],
  rollout: ['rules', 'Rules'],
  stale: ['rules', 'Rules'],
  finder: ['finders', 'Big keys · Finders'],
  proxy: ['fleet', 'Fleet'],
  reports: ['fleet', 'Fleet'],
  sensor: ['fleet', 'Fleet'],
  shield: ['fleet', 'Fleet'],
  source: ['fleet', 'Fleet'],
  watcher: ['fleet', 'Fleet'],
  watchers: ['fleet', 'Fleet'],
  token: ['settings', 'Settings'],
}

/** The page of an alarm, where one shows more of it than its sentence. What is named in the id is chosen there. */
export function alarmPlace(id: string): AlarmPlace | undefined {
  const [kind = '', rest = ''] = id.split(/:(.*)/s)
  const place = Object.hasOwn(places, kind) ? places[kind] : undefined
  if (place === undefined) return undefined
  const [page, title] = place
  return { address: addressOf({ page, parts: [], query: queryOf(kind, rest) }), title }
}

function queryOf(kind: string, rest: string): Readonly<Record<string, string>> {
  // A rule's id is all that follows, a voucher's ends before the last slash; the services' own alarms begin with a service.
  if (kind === 'stale' || kind === 'rollout') return { edit: rest }
  if (kind === 'sale' && rest.endsWith('/dead-letters')) return { voucher: rest.slice(0, -'/dead-letters'.length) }
  if (kind === 'watcher' || kind === 'shield' || kind === 'sensor') return { filter: rest.split('/')[0]! }
  return {}
}
