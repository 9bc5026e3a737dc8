import { InvalidOptionError } from '../errors/firebreak-error.ts'

/** Bounds on what a peer may send. Exceeding one ends reading with a `RespError`. */
export interface RespLimits {
  /** Bytes of one bulk string, like Redis' `proto-max-bulk-len`. @default 536870912 */
  readonly maxBulkBytes?: number
  /** Elements of one aggregate; an entry of a map is two. @default 16777216 */
  readonly maxElements?: number
  /** Nesting depth of aggregates. @default 128 */
  readonly maxDepth?: number
  /** Bytes of one line: a simple string, an error, a number. @default 65536 */
  readonly maxLineBytes?: number
}

/** `RespLimits` with every bound set. */
export type ResolvedRespLimits = Required<RespLimits>

/** The default bounds. */
export const defaultRespLimits: ResolvedRespLimits = {
  maxBulkBytes: 512 * 1024 * 1024,
  maxElements: 16 * 1024 * 1024,
  maxDepth: 128,
  maxLineBytes: 64 * 1024,
}

/** Validates the given bounds and fills in the defaults. */
export function resolveLimits(limits: RespLimits = {}): ResolvedRespLimits {
  const bound = (name: keyof RespLimits): number => checkedBound(name, limits[name] ?? defaultRespLimits[name])
  return {
    maxBulkBytes: bound('maxBulkBytes'),
    maxElements: bound('maxElements'),
    maxDepth: bound('maxDepth'),
    maxLineBytes: bound('maxLineBytes'),
  }
}

/** Returns a valid bound, or throws an `InvalidOptionError`. */
export function checkedBound(name: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 1) throw new InvalidOptionError(name, value, 'a whole number above 0')
  return value
}
