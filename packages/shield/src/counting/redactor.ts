/**
 * The names of keys outside this process. The hub answers in those names, so the reverse mapping must be known: the
 * most recently sent names are remembered, in two generations of bounded size.
 *
 * A redaction that gives many keys one name makes them one key for the hub: their heat is summed, and its decisions
 * apply to each of them.
 */
export class Redactor {
  readonly #redact: (key: string) => string
  readonly #maxNames: number
  #outside = new Map<string, string>()
  #inside = new Map<string, Set<string>>()
  #olderInside = new Map<string, Set<string>>()
  #news: string[] = []

  constructor(redact: (key: string) => string, maxNames = 65_536) {
    this.#redact = redact
    this.#maxNames = maxNames
  }

  /** A key's outside name for its inside name. */
  outside(name: string): string {
    const known = this.#outside.get(name)
    if (known !== undefined) return known
    const redacted = String(this.#redact(name))
    if (this.#outside.size >= this.#maxNames) {
      this.#olderInside = this.#inside
      this.#inside = new Map()
      this.#outside = new Map()
    }
    this.#outside.set(name, redacted)
    const names = this.#inside.get(redacted)
    if (names === undefined) this.#inside.set(redacted, new Set([name]))
    else names.add(name)
    this.#news.push(name)
    return redacted
  }

  /** Inside names seen for the first time since the last call. */
  takeNews(): readonly string[] {
    const news = this.#news
    if (news.length > 0) this.#news = []
    return news
  }

  /** The inside names of an outside name, as far as they are remembered. */
  inside(redacted: string): Iterable<string> {
    const names = this.#inside.get(redacted)
    const older = this.#olderInside.get(redacted)
    if (older === undefined) return names ?? []
    return names === undefined ? older : new Set([...older, ...names])
  }
}
