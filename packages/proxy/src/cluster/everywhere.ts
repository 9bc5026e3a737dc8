import type { JoinKind } from './joined-reply.ts'

/** Keyless commands that go to every master, and how the replies are joined. */
export const everywhere: Record<string, JoinKind> = {
  DBSIZE: 'sum',
  RANDOMKEY: 'any',
  FLUSHALL: 'all',
  FLUSHDB: 'all',
  'SCRIPT LOAD': 'all',
  'SCRIPT FLUSH': 'all',
  'SCRIPT EXISTS': 'least',
  'FUNCTION LOAD': 'all',
  'FUNCTION DELETE': 'all',
  'FUNCTION FLUSH': 'all',
  'FUNCTION RESTORE': 'all',
  'PUBSUB SHARDCHANNELS': 'items',
  'PUBSUB SHARDNUMSUB': 'sums',
  'ACL SETUSER': 'all',
  'ACL DELUSER': 'all',
  'ACL LOAD': 'all',
  'ACL SAVE': 'all',
  'CONFIG SET': 'all',
  'CONFIG RESETSTAT': 'all',
  'CONFIG REWRITE': 'all',
}

/** True for a keyless command that concerns the keys of every node. */
export function isForAll(name: string): boolean {
  return everywhere[name] !== undefined || name === 'KEYS' || name === 'SCAN'
}
