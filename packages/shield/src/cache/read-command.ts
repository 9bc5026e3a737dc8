import { type CommandArgument, encodeCommand } from '@firebreak/core'

/** A read whose reply may be kept: an id that is the same for the same bytes, and the bytes. */
export interface ReadCommand {
  /** The command in capitals and its arguments but the key. */
  readonly id: string
  /** In capitals; a subcommand's is two words. */
  readonly name: string
  encode(): Uint8Array
  /** The same command on another key. */
  encodeFor(key: Uint8Array): Uint8Array
  /** A script that gets the key as its only one and the command's words as its arguments. */
  encodeIn(script: string): Uint8Array
}

/** The read command of a name and its arguments, the key among them at `keyIndex` (0 is the first argument). */
export function readCommand(name: string, args: readonly CommandArgument[], keyIndex: number): ReadCommand {
  let id = name
  for (let index = 0; index < args.length; index++) {
    if (index === keyIndex) continue
    const text = argumentText(args[index]!)
    // Lengths keep `a, bc` and `ab, c` apart.
    id += ` ${text.length}:${text}`
  }
  const words = (all: readonly CommandArgument[]) => [...name.split(' '), ...all]
  return {
    id,
    name,
    encode: () => encodeCommand(words(args)),
    encodeFor: (key) => encodeCommand(words(args.with(keyIndex, key))),
    encodeIn: (script) => encodeCommand(['EVAL', script, 1, args[keyIndex]!, ...words(args)]),
  }
}

// Bytes as Latin-1 and text as it is never meet: the mark tells them apart, at worst one reply is kept twice.
function argumentText(arg: CommandArgument): string {
  if (arg instanceof Uint8Array) return `\u0000${Buffer.from(arg).toString('latin1')}`
  return String(arg)
}
