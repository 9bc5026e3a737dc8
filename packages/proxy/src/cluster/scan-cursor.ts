/**
 * SCAN over all nodes with one cursor: the node's index in the upper bits, the node's own cursor in the lower.
 *
 * A server's cursor is below the size of its hash table, so 52 bits are plenty; 11 more number the nodes, and the whole
 * stays below 2^63 for clients that keep cursors in a signed integer.
 */
const cursorBits = 52n
const cursorMask = (1n << cursorBits) - 1n

/**
 * Which node a cursor belongs to, and that node's own cursor; undefined if Redis would not accept it. Redis reads
 * cursors with C's `strtoul`: an empty one is 0, and a sign is allowed.
 */
export function splitCursor(text: string): { readonly node: number; readonly cursor: bigint } | undefined {
  const [, sign, digits] = /^(?:([+-]?)(\d+))?$/.exec(text) ?? []
  if (digits === undefined && text !== '') return undefined
  const number = BigInt(digits ?? '0')
  if (number !== BigInt.asUintN(64, number)) return undefined
  const whole = BigInt.asUintN(64, sign === '-' ? -number : number)
  return { node: Number(whole >> cursorBits), cursor: whole & cursorMask }
}

/** The next cursor: on the same node, on the next one, or 0 after the last. */
export function joinCursor(node: number, cursor: bigint, nodeCount: number): bigint {
  if (cursor !== 0n) return (BigInt(node) << cursorBits) | cursor
  return node + 1 < nodeCount ? BigInt(node + 1) << cursorBits : 0n
}
