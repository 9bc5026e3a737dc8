import { keyName } from '@firebreak/core'

/** The name of a key that a command was given. */
export function nameOf(key: string | Buffer): string {
  // Only a key that begins with U+0000 can have another name than itself.
  return typeof key === 'string' && key.charCodeAt(0) !== 0 ? key : keyName(key)
}

/** About how many bytes a write sends beside its key. */
export function writtenBytes(args: readonly (string | Buffer)[], from: number): number {
  let bytes = 0
  for (let index = from; index < args.length; index++) bytes += args[index]!.length
  return bytes
}
