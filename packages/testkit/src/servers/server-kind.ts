import { execFileSync } from 'node:child_process'

/** Which server a program is. */
export interface ServerKind {
  readonly name: 'redis' | 'valkey'
  /** `[7, 0, 15]`. */
  readonly version: readonly [number, number, number]
}

/**
 * Server capabilities that matter to Firebreak, with the command that shows each. `redis` and `valkey`: the first
 * version that has it; undefined: none so far. `servers.md` has the same table for readers.
 */
export const capabilities = {
  clusterShards: { redis: [7, 0], valkey: [7, 2], probe: ['CLUSTER', 'SHARDS'] },
  shardedPubSub: { redis: [7, 0], valkey: [7, 2], probe: ['SPUBLISH', 'channel', 'message'] },
  functions: { redis: [7, 0], valkey: [7, 2], probe: ['FUNCTION', 'LIST'] },
  expireTime: { redis: [7, 0], valkey: [7, 2], probe: ['EXPIRETIME', 'key'] },
  clientNoEvict: { redis: [7, 0], valkey: [7, 2], probe: ['CLIENT', 'NO-EVICT', 'off'] },
  clientNoTouch: { redis: [7, 2], valkey: [7, 2], probe: ['CLIENT', 'NO-TOUCH', 'off'] },
  waitAof: { redis: [7, 2], valkey: [7, 2], probe: ['WAITAOF', '0', '0', '0'] },
  hashFieldTtl: { redis: [7, 4], valkey: [9, 0], probe: ['HTTL', 'key', 'FIELDS', '1', 'field'] },
  slotStats: { redis: [8, 2], valkey: [8, 0], probe: ['CLUSTER', 'SLOT-STATS', 'SLOTSRANGE', '0', '0'] },
  setIfEqual: { redis: [8, 4], valkey: [8, 1], probe: ['SET', 'key', 'value', 'IFEQ', 'other'] },
} as const satisfies Record<string, Capability>

interface Capability {
  readonly redis: readonly [number, number]
  readonly valkey: readonly [number, number]
  readonly probe: readonly string[]
}

export type CapabilityName = keyof typeof capabilities

/** Reads `Redis server v=7.0.15 …`, `Valkey server v=8.0.1 …`, and `Server v=7.2.7 …` of the first Valkey. */
export function parseServerKind(text: string): ServerKind {
  const [, name, ...numbers] = text.match(/^(Redis server|Valkey server|Server) v=(\d+)\.(\d+)\.(\d+)/) ?? []
  if (name === undefined) throw new Error(`no Redis and no Valkey: ${text.slice(0, 80)}`)
  const [major, minor, patch] = numbers.map(Number)
  return { name: name === 'Redis server' ? 'redis' : 'valkey', version: [major!, minor!, patch!] }
}

const kinds = new Map<string, ServerKind>()

/** Asks a program once which server it is. */
export function serverKindOf(program: string): ServerKind {
  const known = kinds.get(program)
  if (known !== undefined) return known
  const kind = parseServerKind(execFileSync(program, ['--version'], { encoding: 'utf8' }))
  kinds.set(program, kind)
  return kind
}

export function isAtLeast({ version }: ServerKind, [major, minor]: readonly [number, number]): boolean {
  return version[0] > major || (version[0] === major && version[1] >= minor)
}

export function hasCapability(kind: ServerKind, name: CapabilityName): boolean {
  return isAtLeast(kind, capabilities[name][kind.name])
}

/**
 * Whether a refused AUTH is answered in the middle of a pipeline. Redis from 7.2 on and Valkey leave its answer out where
 * replies before it have not left yet, and every later answer moves up by one.
 */
export function answersRefusedAuth(kind: ServerKind): boolean {
  return kind.name === 'redis' && !isAtLeast(kind, [7, 2])
}
