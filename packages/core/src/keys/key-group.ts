const groupPattern = /^([A-Za-z][A-Za-z0-9-]{0,31})[:_/.|%]/

/** The part of a key before its first separator, `other` if it has none: keys themselves are never labels. */
export function keyGroup(key: string): string {
  return groupPattern.exec(key)?.[1] ?? 'other'
}

/** Sums by group, fit for labels: the largest `maxGroups`, the rest in `other`. */
export function largestGroups(sums: ReadonlyMap<string, number>, maxGroups = 20): Map<string, number> {
  const ranked = [...sums].sort((a, b) => b[1] - a[1])
  const groups = new Map<string, number>()
  for (const [index, [group, sum]] of ranked.entries()) {
    const name = index < maxGroups ? group : 'other'
    groups.set(name, (groups.get(name) ?? 0) + sum)
  }
  return groups
}
