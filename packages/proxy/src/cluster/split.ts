import { keySlotOfBytes } from '@firebreak/core/commands'
import { encodeCommand, RequestParser } from '@firebreak/core/resp'
import type { JoinKind } from './joined-reply.ts'

/** Multi-key commands that are carried out as several, one per slot. */
const splittable: Record<string, { readonly step: number; readonly join: JoinKind }> = {
  MGET: { step: 1, join: 'places' },
  MSET: { step: 2, join: 'all' },
  DEL: { step: 1, join: 'sum' },
  UNLINK: { step: 1, join: 'sum' },
  EXISTS: { step: 1, join: 'sum' },
  TOUCH: { step: 1, join: 'sum' },
}

/** The part of a request with the keys of one slot. */
export interface SplitPart {
  readonly slot: number
  readonly bytes: Uint8Array
  /** The positions of its keys, counted in keys. */
  readonly places: readonly number[]
}

/** The parts of a request over several slots, or undefined if it cannot be split. */
export function splitRequest(
  name: string,
  args: readonly Uint8Array[],
): { readonly parts: readonly SplitPart[]; readonly join: JoinKind } | undefined {
  const rule = splittable[name]
  if (rule === undefined) return undefined
  if ((args.length - 1) % rule.step !== 0) {
    // A key without a value: left for the server to refuse, which checks slots before MSET's arguments.
    const bytes = encodeCommand(args.slice(0, 2))
    return { parts: [{ slot: keySlotOfBytes(args[1]!), bytes, places: [0] }], join: rule.join }
  }
  const bySlot = new Map<number, { args: Uint8Array[]; places: number[] }>()
  for (let index = 1; index < args.length; index += rule.step) {
    const slot = keySlotOfBytes(args[index]!)
    let part = bySlot.get(slot)
    if (part === undefined) {
      part = { args: [args[0]!], places: [] }
      bySlot.set(slot, part)
    }
    part.args.push(...args.slice(index, index + rule.step))
    part.places.push((index - 1) / rule.step)
  }
  const parts = [...bySlot].map(([slot, part]) => ({ slot, bytes: encodeCommand(part.args), places: part.places }))
  return { parts, join: rule.join }
}

/** True if a command can be split at all. */
export function isSplittable(name: string): boolean {
  return splittable[name] !== undefined
}

/** The keys, in order, of a split request whose only arguments are keys. */
export function keysOfParts(parts: readonly SplitPart[]): Uint8Array[] {
  const keys: Uint8Array[] = []
  for (const { bytes, places } of parts) {
    const parser = new RequestParser()
    parser.parse(bytes, 0, bytes.length)
    for (const [index, place] of places.entries())
      keys[place] = bytes.subarray(parser.startOf(index + 1), parser.endOf(index + 1))
  }
  return keys
}
