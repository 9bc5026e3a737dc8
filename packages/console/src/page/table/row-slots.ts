/**
 * Which element shows which row, by numbers that never mean two rows at once. A row that stays keeps its element; a new row
 * takes over the element of one that is gone, since changing an element's text costs a fraction of making a new one. While
 * somebody has the pointer or the focus in the rows nothing is taken over: a focused button must not turn into another row's.
 */
export function rowSlots(
  before: ReadonlyMap<string, number>,
  ids: readonly string[],
  mayReuse: boolean,
): Map<string, number> {
  const free = new Set(before.values())
  let unused = Math.max(-1, ...free) + 1
  for (const id of ids) free.delete(before.get(id) ?? -1)
  const reusable = mayReuse ? [...free].reverse() : []
  return new Map(ids.map((id) => [id, before.get(id) ?? reusable.pop() ?? unused++]))
}
