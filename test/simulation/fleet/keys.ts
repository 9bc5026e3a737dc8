import type { Rule } from '@firebreak/core/rules'
import { parseRule } from '@firebreak/core/rules'

/** How a key is written and read; a write's reply is the key's new version, a read's reply holds one. */
export interface KeyKind {
  readonly write: (key: string) => [string, ...string[]]
  readonly read: (key: string) => [string, ...string[]]
  /** Milliseconds by which a read may be behind an acknowledged write when its guard dies. */
  readonly maxStalenessMs: number
}

const counter = {
  write: (key: string): [string, ...string[]] => ['INCR', key],
  read: (key: string): [string, ...string[]] => ['GET', key],
}

export const kinds = {
  cache: { ...counter, maxStalenessMs: 300 },
  hash: {
    write: (key: string): [string, ...string[]] => ['HINCRBY', key, 'field', '1'],
    read: (key: string): [string, ...string[]] => ['HGET', key, 'field'],
    maxStalenessMs: 300,
  },
  list: {
    write: (key: string): [string, ...string[]] => ['RPUSH', key, 'item'],
    read: (key: string): [string, ...string[]] => ['LLEN', key],
    maxStalenessMs: 300,
  },
  brief: { ...counter, maxStalenessMs: 100 },
  copy: { ...counter, maxStalenessMs: 1500 },
  limit: { ...counter, maxStalenessMs: 300 },
  cold: { ...counter, maxStalenessMs: 0 },
} as const satisfies Record<string, KeyKind>

export type KindName = keyof typeof kinds

/** The keys of the fleet whose versions are followed; with those that live for a while only they are twenty. */
export const versioned: readonly string[] = [
  ...['cache:0', 'cache:1', 'cache:2', 'cache:3', 'cache:4', 'cache:5', 'cache:6', 'cache:7'],
  ...['hash:0', 'list:0', 'brief:0', 'brief:1', 'copy:0', 'copy:1', 'limit:0', 'cold:0', 'cold:1', 'cold:2'],
]
export const passing: readonly string[] = ['ttl:0', 'ttl:1']
export const passingMs = 700

/** Guards of the lane: `leaseMs`, two heartbeats, and what a slow link adds to a heartbeat's least travel. */
const laneStalenessMs = 2300 + 1000

/** By how much a read may be behind where tracking is refused and the hubs' lane is the guard. */
export function laneStaleness(key: string): number {
  const { maxStalenessMs } = kindOf(key)
  return maxStalenessMs === kinds.cache.maxStalenessMs ? laneStalenessMs : maxStalenessMs
}

export function kindOf(key: string): KeyKind {
  return kinds[key.slice(0, key.indexOf(':')) as KindName]
}

/** Accesses a second from which a key is hot. */
export const threshold = 25
export const limitPerWindow = 8

const common = { threshold, windowMs: 1000, minHoldMs: 1500 }

export const fleetRules: readonly Rule[] = [
  { id: 'cache', prefix: 'cache:', strategy: 'LocalCache', ...common },
  { id: 'hash', prefix: 'hash:', strategy: 'LocalCache', ...common },
  { id: 'list', prefix: 'list:', strategy: 'LocalCache', ...common },
  { id: 'ttl', prefix: 'ttl:', strategy: 'LocalCache', ...common },
  { id: 'brief', prefix: 'brief:', strategy: { strategy: 'LocalCache', maxStalenessMs: 100 }, ...common },
  { id: 'copy', prefix: 'copy:', strategy: { strategy: 'RedundantKeys', copyCount: 3 }, ...common },
  {
    id: 'limit',
    prefix: 'limit:',
    strategy: { strategy: 'RateLimit', limit: limitPerWindow, windowMs: 1000, onLimit: 'reject', scope: 'process' },
    ...common,
  },
].map((rule) => parseRule(rule))
