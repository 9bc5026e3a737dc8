import { keyName } from '@firebreak/core'
import { commandOfArgs, forEachKey, ListArgs } from '@firebreak/core/commands'
import type { Change, ChangedKey } from './change.ts'

/**
 * Turns a stream of write commands (a replica's, an AOF's) into changes.
 *
 * Servers replicate effects: a script's writes arrive one by one inside MULTI … EXEC, an expired key as DEL, a relative
 * TTL as an absolute one. So the command table is enough to find the keys, and only five kinds of command need more:
 * SELECT switches the database, MULTI and EXEC group what is between them into one change, and FLUSHDB, FLUSHALL and
 * SWAPDB may change everything. A command that the table does not have (a module's) may have changed any key, so it
 * counts as a flush too.
 */
export class ChangeReader {
  #database = 0
  #transaction: ChangedKey[] | undefined
  readonly #maxValueBytes: number
  readonly #emit: (change: Change) => void
  readonly #args = new ListArgs()

  /** Values up to `maxValueBytes` are sent along with the change. */
  constructor(maxValueBytes: number, emit: (change: Change) => void) {
    this.#maxValueBytes = maxValueBytes
    this.#emit = emit
  }

  get database(): number {
    return this.#database
  }

  /** Reads the next command of the stream; the arguments' bytes may be reused afterwards. */
  read(args: readonly Uint8Array[]): void {
    const name = asciiUpper(args[0])
    switch (name) {
      case 'SELECT':
        this.#database = Number(asciiUpper(args[1]))
        return
      case 'PING':
      case 'REPLCONF':
      case 'PUBLISH':
      case 'SPUBLISH':
      case 'SCRIPT':
      case 'FUNCTION':
        return
      case 'MULTI':
        this.#transaction = []
        return
      case 'EXEC': {
        const keys = this.#transaction ?? []
        this.#transaction = undefined
        if (keys.length > 0) this.#emit({ kind: 'keys', database: this.#database, keys })
        return
      }
      case 'FLUSHDB':
        this.#flush(this.#database, 'FLUSHDB')
        return
      case 'FLUSHALL':
        this.#flush(-1, 'FLUSHALL')
        return
      case 'SWAPDB':
        this.#flush(Number(asciiUpper(args[1])), 'SWAPDB')
        this.#flush(Number(asciiUpper(args[2])), 'SWAPDB')
        return
    }
    this.#keys(name, args)
  }

  #keys(name: string, args: readonly Uint8Array[]): void {
    const row = commandOfArgs(this.#args.set(args))
    if (row === undefined) {
      this.#flush(-1, `the command ${name} is unknown and may have changed any key`)
      return
    }
    const keys: ChangedKey[] = []
    forEachKey(row, this.#args, (index, access) => {
      if (access === 'write') keys.push({ key: keyName(args[index]!) })
    })
    // MOVE and COPY … DB write to another database under the same name: everything there is in doubt.
    if (name === 'MOVE' || (name === 'COPY' && args.length > 3)) this.#flush(-1, `${name} to another database`)
    if (keys.length === 0) return
    if (name === 'SET' && args.length === 3 && args[2]!.length <= this.#maxValueBytes) {
      // Copied, because `slice` of a `Buffer` is a view of bytes that may be reused.
      keys[0] = { key: keys[0]!.key, value: new Uint8Array(args[2]!) }
    }
    if (this.#transaction !== undefined) this.#transaction.push(...keys)
    else this.#emit({ kind: 'keys', database: this.#database, keys })
  }

  #flush(database: number, reason: string): void {
    if (this.#transaction !== undefined) this.#transaction = []
    this.#emit({ kind: 'flush', database, reason })
  }
}

function asciiUpper(bytes: Uint8Array | undefined): string {
  let text = ''
  for (const byte of bytes ?? []) text += String.fromCharCode(byte)
  return text.toUpperCase()
}
