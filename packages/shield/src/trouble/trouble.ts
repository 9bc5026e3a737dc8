import { plainLines } from '@firebreak/core'
/** A failure of Firebreak's own; the application's Redis calls continue without it. */
export interface Warning {
  /** A stable name for the kind of problem, such as `hub-unreachable`. */
  readonly kind: string
  readonly message: string
  readonly cause?: unknown
}

const maxUntold = 20
const maxMessage = 500

/**
 * Collects the shield's own problems. None of them may fail or delay a Redis call, so they are counted, reported once
 * for each kind, and reported again only after that kind has recovered in between.
 */
export class Trouble {
  readonly #listener: (warning: Warning) => void
  readonly #told = new Set<string>()
  readonly #untold = new Map<string, string>()
  #count = 0

  constructor(listener: (warning: Warning) => void = emitProcessWarning) {
    this.#listener = listener
  }

  /** Number of problems so far. */
  get count(): number {
    return this.#count
  }

  note(kind: string, message: string, cause?: unknown): void {
    this.#count++
    if (this.#untold.size < maxUntold) this.#untold.set(kind, message)
    if (this.#told.has(kind)) return
    this.#told.add(kind)
    try {
      this.#listener({ kind, message, ...(cause !== undefined && { cause }) })
    } catch {
      // A listener that throws is the application's; it must not break the current call.
    }
  }

  /** What was noted since the last call, for the hub. */
  takeNoted(): { readonly kind: string; readonly message: string }[] {
    const noted = [...this.#untold].map(([kind, message]) => ({ kind, message: message.slice(0, maxMessage) }))
    this.#untold.clear()
    return noted
  }

  /** Something of ours threw where nobody else would catch it. */
  failed(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error)
    this.note('internal', `internal error in Firebreak (${message}); Redis calls pass through. Please report it`, error)
  }

  /** Runs our own code; if it throws, runs `otherwise`, which must leave no call waiting. */
  attempt(run: () => void, otherwise?: (error: unknown) => void): void {
    try {
      run()
    } catch (error) {
      this.failed(error)
      if (otherwise !== undefined) this.attempt(() => otherwise(error))
    }
  }

  /** The same function, with its errors caught here. */
  guarded<Arguments extends unknown[]>(run: (...given: Arguments) => void): (...given: Arguments) => void {
    return (...given) => {
      try {
        run(...given)
      } catch (error) {
        this.failed(error)
      }
    }
  }

  /** This kind has recovered: its next problem is reported again. */
  clear(kind: string): void {
    this.#told.delete(kind)
  }
}

/** The default for warnings that nobody handles. */
export function emitProcessWarning({ kind, message }: Warning): void {
  process.emitWarning(plainLines(message), { type: 'FirebreakWarning', code: kind })
}
