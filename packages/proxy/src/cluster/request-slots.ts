import { firstKeyIndex, forEachKey, keySlotOfBytes } from '@firebreak/core/commands'
import type { ClientRequest } from '../requests/client-request.ts'
import { isForAll } from './everywhere.ts'
import { isSplittable } from './split.ts'

/** The slot of a request's first key or shard channel, or -1. */
export function slotOf({ args, parser, command: { row, name } }: ClientRequest): number {
  if (row === undefined) return -1
  let index = row.flags.has('sharded') && args.length > 1 ? 1 : firstKeyIndex(row, args)
  // Neither the table nor the server knows of a key in any other use of DEBUG.
  if (index === 0 && name === 'DEBUG' && args.length > 2 && args.isWord(1, 'OBJECT')) index = 2
  return index === 0 ? -1 : keySlotOfBytes(parser.bytes, parser.startOf(index), parser.endOf(index))
}

/** True if a request has keys in several slots. */
export function isCrossSlot({ args, parser, command }: ClientRequest): boolean {
  let first = -1
  let isCross = false
  forEachKey(command.row!, args, (index) => {
    const slot = keySlotOfBytes(parser.bytes, parser.startOf(index), parser.endOf(index))
    if (first < 0) first = slot
    else if (slot !== first) isCross = true
  })
  return isCross
}

/** True if a request goes to several nodes: all of them, or those of its keys. */
export function isForMany(request: ClientRequest): boolean {
  const { name } = request.command
  return isForAll(name) || (isSplittable(name) && isCrossSlot(request))
}
