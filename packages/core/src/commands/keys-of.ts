import type { CommandArgs } from './command-args.ts'
import type { CommandRow, KeyAccess } from './command-row.ts'
import type { KeySpec } from './key-spec.ts'

/** Called for each key of a command; index 0 is the command's name. */
export type KeyVisitor = (index: number, access: KeyAccess) => void

/** A key argument of a command. */
export interface KeyArgument {
  readonly index: number
  readonly access: KeyAccess
}

/** The index of a command's first key, or 0 if these arguments have none. The common case is one comparison. */
export function firstKeyIndex(row: CommandRow, args: CommandArgs): number {
  if (row.firstKey > 0) return row.firstKey < args.length ? row.firstKey : 0
  if (row.keys.length === 0) return 0
  let first = 0
  forEachKey(row, args, (index) => {
    if (first === 0) first = index
  })
  return first
}

/**
 * Visits each key of a command with its access, in the order of COMMAND GETKEYS. For arguments that Redis would refuse
 * (too few, or a count that exceeds them), it visits the keys that are in key positions and no others. If GEORADIUS
 * names several destinations, of which it writes the last, all are visited: COMMAND GETKEYS has only the first.
 */
export function forEachKey(row: CommandRow, args: CommandArgs, visit: KeyVisitor): void {
  const { keys } = row
  for (let index = 0; index < keys.length; index++) visitSpec(keys[index]!, args, visit)
}

/** The keys of a command as a list; `forEachKey` allocates none. */
export function keysOf(row: CommandRow, args: CommandArgs): KeyArgument[] {
  const keys: KeyArgument[] = []
  forEachKey(row, args, (index, access) => keys.push({ index, access }))
  return keys
}

/**
 * Whether the reply to exactly these arguments depends only on one key's value and the arguments: the command is such a
 * read and was given only one key (MGET and PFCOUNT may have more).
 */
export function isCacheable(row: CommandRow, args: CommandArgs): boolean {
  if (!row.cacheable) return false
  if (row.hasSingleKey) return row.firstKey < args.length
  let count = 0
  forEachKey(row, args, () => count++)
  return count === 1
}

/** Whether a command with these arguments may wait for data: XREAD and XREADGROUP only wait with BLOCK. */
export function mayBlock(row: CommandRow, args: CommandArgs): boolean {
  if (!row.flags.has('blocking')) return false
  if (row.type !== 'stream') return true
  for (let index = 1; index < args.length && !args.isWord(index, 'STREAMS'); index++) {
    if (args.isWord(index, 'GROUP')) index += 2
    else if (args.isWord(index, 'BLOCK')) return true
  }
  return false
}

function visitSpec(spec: KeySpec, args: CommandArgs, visit: KeyVisitor): void {
  switch (spec.kind) {
    case 'range': {
      const last = spec.last < 0 ? args.length + spec.last : Math.min(spec.last, args.length - 1)
      for (let index = spec.first; index <= last; index += spec.step) visit(index, spec.access)
      return
    }
    case 'counted': {
      const first = spec.countAt + 1
      const count = spec.countAt < args.length ? args.numberAt(spec.countAt) : 0
      const last = first + (count - 1) * spec.step
      if (!(last < args.length)) return
      for (let index = first; index <= last; index += spec.step) visit(index, spec.access)
      return
    }
    case 'keyword': {
      for (let index = spec.from; index < args.length - 1; index++) {
        if (!isOneOf(args, index, spec.words)) continue
        const last = spec.isHalfOfRest ? index + Math.floor((args.length - index - 1) / 2) : index + 1
        while (index < last) visit(++index, spec.access)
        if (spec.isHalfOfRest) return
      }
      return
    }
    case 'rule':
      if (spec.rule === 'sort') visitSort(args, visit)
      else if (spec.rule === 'migrate') visitMigrate(args, visit)
      else if (args.length > 1) visit(1, bitfieldAccess(args))
  }
}

function isOneOf(args: CommandArgs, index: number, words: readonly string[]): boolean {
  for (const word of words) if (args.isWord(index, word)) return true
  return false
}

/**
 * SORT key … STORE destination. BY and GET take patterns, which may spell "store"; of two STOREs the last one counts.
 */
function visitSort(args: CommandArgs, visit: KeyVisitor): void {
  if (args.length > 1) visit(1, 'read')
  let destination = 0
  for (let index = 2; index < args.length; index++) {
    if (args.isWord(index, 'LIMIT')) index += 2
    else if (args.isWord(index, 'BY') || args.isWord(index, 'GET')) index++
    else if (args.isWord(index, 'STORE') && index + 1 < args.length) destination = ++index
  }
  if (destination > 0) visit(destination, 'write')
}

/**
 * MIGRATE host port key|"" db timeout [COPY] [REPLACE] [AUTH password] [AUTH2 user password] [KEYS key …]. A password may
 * be "keys"; a key before the timeout and KEYS together are refused.
 */
function visitMigrate(args: CommandArgs, visit: KeyVisitor): void {
  let keys = 0
  for (let index = 6; index < args.length && keys === 0; index++) {
    if (args.isWord(index, 'AUTH')) index++
    else if (args.isWord(index, 'AUTH2')) index += 2
    else if (args.isWord(index, 'KEYS')) keys = index + 1
  }
  if (keys === 0) {
    if (args.length > 3) visit(3, 'write')
  } else if (args.isEmpty(3)) {
    for (let key = keys; key < args.length; key++) visit(key, 'write')
  }
}

/** BITFIELD only reads if all of its operations are GET type offset. */
function bitfieldAccess(args: CommandArgs): KeyAccess {
  for (let index = 2; index < args.length; index++) {
    if (!args.isWord(index, 'GET')) return 'write'
    index += 2
  }
  return 'read'
}
