import { readSecretFile } from '@firebreak/core/node'
import type { Trouble } from '../trouble/trouble.ts'

export interface RenewableTokenOptions {
  readonly token?: string | undefined
  /** A file with the token. */
  readonly tokenFile?: string | undefined
}

/**
 * The app token of a process. One in a file is read again for each connection and after each refusal, so that a rotated
 * token needs no restart. A file that cannot be read leaves the last token in force.
 */
export class RenewableToken {
  readonly file: string | undefined
  readonly #trouble: Trouble
  #current: string | undefined
  #readAt = Number.NEGATIVE_INFINITY

  constructor({ token, tokenFile }: RenewableTokenOptions, trouble: Trouble) {
    this.#current = token
    this.file = token === undefined ? tokenFile : undefined
    this.#trouble = trouble
    this.renew()
  }

  get current(): string | undefined {
    return this.#current
  }

  /** Reads the file again; true if it has another token than before. */
  renew(): boolean {
    if (this.file === undefined) return false
    const before = this.#current
    try {
      this.#current = readSecretFile(this.file).trim()
      this.#trouble.clear('token-file')
    } catch (error) {
      const rest = before === undefined ? 'reports go out without a token' : 'the last token stays in use'
      const reason = (error as Error).message
      this.#trouble.note('token-file', `cannot read the file of the app token: ${reason}; ${rest}`, error)
    }
    return this.#current !== before
  }

  /** The token, read again if that was long ago: for what has no connection that the hub could refuse. */
  currentAt(now: number): string | undefined {
    if (now - this.#readAt >= renewEveryMs) {
      this.#readAt = now
      this.renew()
    }
    return this.#current
  }
}

const renewEveryMs = 10_000
