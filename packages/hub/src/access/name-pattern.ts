/**
 * Names with `*` for any characters: `cart-*`, `*`. Matching backtracks at most to the last `*`, so it costs at most
 * pattern × name.
 */
export function matchesName(pattern: string, name: string): boolean {
  let at = 0
  let place = 0
  let star = -1
  let retry = 0
  while (at < name.length) {
    if (pattern[place] === '*') {
      star = place++
      retry = at
    } else if (pattern[place] === name[at]) {
      place++
      at++
    } else if (star >= 0) {
      place = star + 1
      at = ++retry
    } else {
      return false
    }
  }
  while (pattern[place] === '*') place++
  return place === pattern.length
}

export function matchesAny(patterns: readonly string[], name: string): boolean {
  return patterns.some((pattern) => matchesName(pattern, name))
}
