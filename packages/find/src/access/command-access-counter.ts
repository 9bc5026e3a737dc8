import { type CommandRow, commandOfArgs, forEachKey, keySlotOfBytes, ListArgs } from '@firebreak/core/commands'
import { escapeKey } from '../keys/escape-key.ts'
import type { FoundKey } from '../keys/found-key.ts'
import { TopList } from '../keys/top-list.ts'

/** Bounds and filters for counting accesses. */
export interface CommandAccessCounterOptions {
  /**
   * Number of distinct keys counted at once; beyond that the rarer half is dropped and the error grows. @default 500000
   */
  readonly maxKeys?: number
  /** Only count keys that this accepts. */
  readonly matches?: (key: Buffer) => boolean
  /** Only count commands on this type of value. */
  readonly type?: string
}

interface Access {
  count: number
  writes: number
  bytes: number
  /** Counts by command; most keys see one or two. */
  readonly commands: Map<string, number>
}

/** Accesses of one slot. */
export interface SlotAccesses {
  readonly slot: number
  readonly accesses: number
  readonly bytes: number
}

/**
 * Counts accesses by key from a stream of commands. Counts are exact up to `maxKeys` distinct keys; then the least-seen
 * keys are dropped until half are left, and whatever a dropped key may have had is added to the error of all counts
 * (the same trade-off as in Lossy Counting): a key that is really hot is never lost.
 */
export class CommandAccessCounter {
  /** Commands seen, by name. */
  readonly commands = new Map<string, number>()
  readonly #options: CommandAccessCounterOptions
  readonly #maxKeys: number
  readonly #keys = new Map<string, Access>()
  readonly #slotAccesses = new Float64Array(16384)
  readonly #slotBytes = new Float64Array(16384)
  readonly #list = new ListArgs()
  #commandCount = 0
  #accesses = 0
  #maxError = 0

  constructor(options: CommandAccessCounterOptions = {}) {
    this.#options = options
    this.#maxKeys = options.maxKeys ?? 500_000
  }

  get commandCount(): number {
    return this.#commandCount
  }

  /** Accesses of keys, after filtering. */
  get accesses(): number {
    return this.#accesses
  }

  /** How much too low a count can be. */
  get maxError(): number {
    return this.#maxError
  }

  get keyCount(): number {
    return this.#keys.size
  }

  /** Counts one command; `bytes` is the size of its request. */
  add(args: readonly Uint8Array[], bytes: number): void {
    this.#commandCount++
    const list = this.#list.set(args)
    const row = commandOfArgs(list)
    const name = row?.name ?? Buffer.from(args[0]!).toString('latin1').toUpperCase().slice(0, 40)
    if (this.commands.size < 2000 || this.commands.has(name))
      this.commands.set(name, (this.commands.get(name) ?? 0) + 1)
    if (row === undefined || !this.#isWanted(row)) return
    forEachKey(row, list, (index, access) => {
      const key = args[index]
      if (key !== undefined)
        this.#count(name, Buffer.from(key.buffer, key.byteOffset, key.length), access === 'write', bytes)
    })
  }

  /** The hottest keys; rates and shares are relative to `seconds` of watching. */
  hottest(top: number, seconds: number): FoundKey[] {
    const list = new TopList<readonly [string, Access]>(top, ([name]) => name)
    for (const entry of this.#keys) list.add(entry[1].count, entry)
    return list.sorted().map(([name, access]) => {
      const key = Buffer.from(name, 'latin1')
      return {
        key: escapeKey(key),
        slot: keySlotOfBytes(key),
        accesses: access.count,
        writes: access.writes,
        accessesPerSecond: seconds > 0 ? access.count / seconds : 0,
        share: this.#accesses === 0 ? 0 : access.count / this.#accesses,
        networkBytes: access.bytes,
        commands: Object.fromEntries([...access.commands].sort((a, b) => b[1] - a[1]).slice(0, 5)),
      }
    })
  }

  /** The slots that had accesses, busiest first. */
  slots(): SlotAccesses[] {
    const slots: SlotAccesses[] = []
    this.#slotAccesses.forEach((accesses, slot) => {
      if (accesses > 0) slots.push({ slot, accesses, bytes: this.#slotBytes[slot]! })
    })
    return slots.sort((a, b) => b.accesses - a.accesses || a.slot - b.slot)
  }

  #isWanted(row: CommandRow): boolean {
    return this.#options.type === undefined || row.type === this.#options.type
  }

  #count(command: string, key: Buffer, isWrite: boolean, bytes: number): void {
    if (this.#options.matches?.(key) === false) return
    this.#accesses++
    const slot = keySlotOfBytes(key)
    this.#slotAccesses[slot]!++
    this.#slotBytes[slot]! += bytes
    const name = key.toString('latin1')
    let access = this.#keys.get(name)
    if (access === undefined) {
      if (this.#keys.size >= this.#maxKeys) this.#dropRarest()
      access = { count: 0, writes: 0, bytes: 0, commands: new Map() }
      this.#keys.set(name, access)
    }
    access.count++
    if (isWrite) access.writes++
    access.bytes += bytes
    access.commands.set(command, (access.commands.get(command) ?? 0) + 1)
  }

  #dropRarest(): void {
    const counts = Float64Array.from(this.#keys.values(), ({ count }) => count).sort()
    const median = counts[counts.length >> 1]!
    for (const [name, { count }] of this.#keys) if (count <= median) this.#keys.delete(name)
    this.#maxError += median
  }
}
