import { forEachKey, type KeyAccess } from '@firebreak/core/commands'
import type { HotKey } from '../cache/hot-key.ts'
import type { GateRequest } from './gate-request.ts'

/** What the keys of one command mean to the shield. One object for all commands: it is read before anything is done. */
export class KeySurvey {
  /** The last hot key that is only read, and its argument index. */
  read: HotKey | undefined
  readIndex = 0
  /** The hot keys that are written. */
  written: HotKey[] | undefined
  /** The hot keys that are limited, read or written. */
  limited: HotKey[] | undefined
  #request: GateRequest | undefined

  /** Visits each key of a command once. */
  of(request: GateRequest): this {
    const { row, args } = request
    this.#request = request
    this.read = this.written = this.limited = undefined
    if (!row.hasSingleKey) forEachKey(row, args, this.#visit)
    else if (row.firstKey < args.length) this.#visit(row.firstKey, row.keys[0]!.access)
    // A request belongs to a client, which must not be kept alive because it was the last to ask.
    this.#request = undefined
    return this
  }

  readonly #visit = (index: number, access: KeyAccess): void => {
    const isWrite = access === 'write'
    const { row, turn } = this.#request!
    const hot = this.#request!.visit(index, isWrite)
    if (hot === undefined) return
    // Counted when it came, not again after a limit has held it.
    if (turn === undefined) hot.heard?.add(row)
    if (hot.limit !== undefined) (this.limited ??= []).push(hot)
    if (isWrite) {
      ;(this.written ??= []).push(hot)
      return
    }
    this.read = hot
    this.readIndex = index
  }
}
