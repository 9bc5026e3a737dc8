/** Something of Firebreak's own that does not work; the application's Redis calls go on without it. */
export interface Warning {
  /** A stable name of the kind of trouble, as `hub-unreachable`. */
  readonly kind: string
  readonly message: string
  readonly cause?: unknown
}

/**
 * Where the shield's own trouble goes. Nothing of it may fail or delay a Redis call, so it is counted, told once for
 * each kind, and told again only after the kind was well in between.
 */
export class Trouble {
  readonly #listener: (warning: Warning) => void
  readonly #told = new Set<string>()
  #count = 0

  constructor(listener: (warning: Warning) => void = emitProcessWarning) {
    this.#listener = listener
  }

  /** All trouble so far. */
  get count(): number {
    return this.#count
  }

  note(kind: string, message: string, cause?: unknown): void {
    this.#count++
    if (this.#told.has(kind)) return
    this.#told.add(kind)
    try {
      this.#listener({ kind, message, ...(cause !== undefined && { cause }) })
    } catch {
      // A listener that throws is the application's; it must not break the call we are in.
    }
  }

  /** Something of ours threw where nobody else would catch it. */
  failed(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error)
    this.note('internal', `Firebreak failed inside (${message}); Redis calls pass through. Please report it`, error)
  }

  /** The same function, whose errors end here. */
  guarded<Arguments extends unknown[]>(run: (...given: Arguments) => void): (...given: Arguments) => void {
    return (...given) => {
      try {
        run(...given)
      } catch (error) {
        this.failed(error)
      }
    }
  }

  /** The kind is well again: its next trouble is reported again. */
  clear(kind: string): void {
    this.#told.delete(kind)
  }
}

/** What becomes of a warning that nobody asked for. */
export function emitProcessWarning({ kind, message }: Warning): void {
  process.emitWarning(message, { type: 'FirebreakWarning', code: kind })
}
