/**
 * An event that the history holds more often than hubs recorded it. Two that say the same at the same moment are in order:
 * a hub that was frozen takes in one moment what two frames told it, and records both.
 */
export function extraEvent(stored: readonly string[], recorded: ReadonlyMap<string, number>): string | undefined {
  const seen = new Map<string, number>()
  return stored.find((event) => {
    const count = (seen.get(event) ?? 0) + 1
    seen.set(event, count)
    // Events that a hub records before it is open are not counted.
    return count > Math.max(1, recorded.get(event) ?? 0)
  })
}
