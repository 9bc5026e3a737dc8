/**
 * What a command without keys does to the shield's knowledge: `flush` changes any key; `untold` does too, without any
 * watcher being notified (or it changes who may read); the others change what the connection has open, which database
 * it sees, or its user. `names` changes nothing, but shows which keys exist.
 */
export type KeylessEffect =
  | 'multi'
  | 'end'
  | 'unwatch'
  | 'reset'
  | 'asking'
  | 'select'
  | 'auth'
  | 'hello'
  | 'names'
  | 'flush'
  | 'untold'

/**
 * Every keyless command that has an effect, for all adapters. The others have none: scripts and functions change keys
 * when they are called, not when they are loaded or deleted.
 */
const effects: ReadonlyMap<string, KeylessEffect> = new Map([
  ['MULTI', 'multi'],
  ['EXEC', 'end'],
  ['DISCARD', 'end'],
  ['UNWATCH', 'unwatch'],
  ['RESET', 'reset'],
  ['ASKING', 'asking'],
  ['SELECT', 'select'],
  ['AUTH', 'auth'],
  ['HELLO', 'hello'],
  ['KEYS', 'names'],
  ['SCAN', 'names'],
  ['RANDOMKEY', 'names'],
  ['FLUSHALL', 'flush'],
  ['FLUSHDB', 'flush'],
  ['CLUSTER FLUSHSLOT', 'flush'],
  ['FT.DROPINDEX', 'flush'],
  ['SWAPDB', 'untold'],
  ['DEBUG', 'untold'],
  ['ACL SETUSER', 'untold'],
  ['ACL DELUSER', 'untold'],
  ['ACL LOAD', 'untold'],
])

/** The effect of a keyless command; undefined if it has none. */
export function keylessEffect(name: string): KeylessEffect | undefined {
  return effects.get(name)
}
