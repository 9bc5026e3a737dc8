// `@firebreak/core/commands`: The table of commands, their keys and slots.

export { readClusterSlots, type SlotNode, type SlotRange } from '../slots/cluster-slots.ts'
export { keySlot, keySlotOfBytes, slotCount } from '../slots/key-slot.ts'
export { SlotMap } from '../slots/slot-map.ts'
export { type ArgumentOffsets, BufferArgs, type CommandArgs, ListArgs } from './command-args.ts'
export type {
  CommandFlag,
  CommandRow,
  CommandType,
  KeyAccess,
} from './command-row.ts'
export { allCommands, commandOf, commandOfArgs, commandOfBytes } from './command-table.ts'
export type { KeyRule, KeySpec } from './key-spec.ts'
export {
  firstKeyIndex,
  forEachKey,
  isCacheable,
  type KeyArgument,
  type KeyVisitor,
  keysOf,
  mayBlock,
} from './keys-of.ts'
export { NameTable } from './name-table.ts'
