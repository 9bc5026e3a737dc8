/**
 * An object for names that users choose: without a prototype, so that `toString` or `__proto__` is a name like any
 * other.
 */
export function named<Value>(entries: Iterable<readonly [string, Value]> = []): Record<string, Value> {
  const names: Record<string, Value> = Object.create(null)
  for (const [name, value] of entries) names[name] = value
  return names
}
