import { keyName } from '@firebreak/core'

/** The name of a key in a command's arguments. */
export function nameOf(key: string | Buffer): string {
  // Only a key that begins with U+0000 can have a name other than itself.
  return typeof key === 'string' && key.charCodeAt(0) !== 0 ? key : keyName(key)
}

/** Approximate bytes that a write sends in addition to its key. */
export function writtenBytes(args: readonly (string | Buffer)[], from: number): number {
  let bytes = 0
  for (let index = from; index < args.length; index++) bytes += args[index]!.length
  return bytes
}
