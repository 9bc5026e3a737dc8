import { type CommandArgument, encodeCommand } from '@firebreak/core/resp'

/** A read whose reply may be kept: an id that is the same for equal bytes, and the bytes. */
export interface ReadCommand {
  /** The command in capitals, and its arguments except the key. */
  readonly id: string
  /** In capitals; a subcommand's is two words. */
  readonly name: string
  encode(): Uint8Array
  /** The same command on another key. */
  encodeFor(key: Uint8Array): Uint8Array
  /** A script with the key as its only key and the command's words as its arguments. */
  encodeIn(script: string): Uint8Array
}

/** Makes the read command of a name and its arguments, with the key at `keyIndex` (0 is the first argument). */
export function readCommand(name: string, args: readonly CommandArgument[], keyIndex: number): ReadCommand {
  return new WordsCommand(name, args, keyIndex)
}

/** Like `readCommand`, from all words of a request including its name; the key is one of them. */
export function readCommandOf(name: string, words: readonly CommandArgument[], keyIndex: number): ReadCommand {
  const skipped = name.includes(' ') ? 2 : 1
  return readCommand(name, words.slice(skipped), keyIndex - skipped)
}

/** GET of a key. */
export function getCommand({ bytes }: { readonly bytes: Uint8Array }): ReadCommand {
  return readCommand('GET', [bytes], 0)
}

/** A class, because a hit on the send path creates one only to know its id: methods cost nothing there, closures do. */
class WordsCommand implements ReadCommand {
  readonly id: string
  readonly name: string
  readonly #args: readonly CommandArgument[]
  readonly #keyIndex: number

  constructor(name: string, args: readonly CommandArgument[], keyIndex: number) {
    this.name = name
    this.#args = args
    this.#keyIndex = keyIndex
    let id = name
    for (let index = 0; index < args.length; index++) {
      if (index === keyIndex) continue
      const text = argumentText(args[index]!)
      // Lengths distinguish `a, bc` from `ab, c`.
      id += ` ${text.length}:${text}`
    }
    this.id = id
  }

  encode(): Uint8Array {
    return encodeCommand(this.#words(this.#args))
  }

  encodeFor(key: Uint8Array): Uint8Array {
    return encodeCommand(this.#words(this.#args.with(this.#keyIndex, key)))
  }

  encodeIn(script: string): Uint8Array {
    return encodeCommand(['EVAL', script, 1, this.#args[this.#keyIndex]!, ...this.#words(this.#args)])
  }

  #words(args: readonly CommandArgument[]): CommandArgument[] {
    return [...this.name.split(' '), ...args]
  }
}

// Bytes as Latin-1 never collide with text: a mark distinguishes them, and at worst one reply is kept twice.
function argumentText(arg: CommandArgument): string {
  if (arg instanceof Uint8Array) return `\u0000${Buffer.from(arg).toString('latin1')}`
  return String(arg)
}
