import type { CentreAddress, CentreMeans } from '../centre-address.ts'
import { CentreError, centreDown, messageOf } from '../errors.ts'
import { type HttpAnswer, HttpClient } from './http-client.ts'

/** A request to whichever host answers. */
export interface CentreQuestion {
  readonly method: 'GET' | 'POST' | 'PUT'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** True: 404 is a valid answer. */
  readonly may404?: boolean
  /** How long the centre may take before it answers. @default 0 */
  readonly waitMs?: number
  readonly signal?: AbortSignal
}

const requestTimeoutMs = 3000

/** Asks the hosts of a centre one by one until one answers; that one is asked first from then on. */
export class HttpCentreClient {
  readonly #kind: string
  readonly #bases: readonly string[]
  readonly #http: HttpClient
  #preferred = 0

  constructor(kind: string, { hosts, isTls, tls }: CentreAddress, { runtime, keepsAlive }: CentreMeans) {
    this.#kind = kind
    this.#bases = hosts.map((host) => `${isTls ? 'https' : 'http'}://${host}`)
    this.#http = new HttpClient({ timers: runtime.timers, tls, keepsAlive })
  }

  async ask({ method, path, headers = {}, body, may404, waitMs = 0, signal }: CentreQuestion): Promise<HttpAnswer> {
    let lastError: unknown
    for (let tried = 0; tried < this.#bases.length; tried++) {
      const url = `${this.#bases[this.#preferred]}${path}`
      const timeoutMs = waitMs + requestTimeoutMs
      const rest = { ...(body !== undefined && { body }), ...(signal !== undefined && { signal }) }
      try {
        const answer = await this.#http.ask(url, { method, headers, timeoutMs, ...rest })
        const { status } = answer
        if ((status >= 200 && status < 300) || (status === 404 && may404 === true)) return answer
        if (status === 401 || status === 403)
          throw new CentreError('FB_CENTRE_REFUSED', `${this.#kind} answered ${status}: check the user or token`)
        lastError = new Error(`${status}: ${answer.text.slice(0, 100)}`)
      } catch (error) {
        if (error instanceof CentreError || signal?.aborted) throw error
        lastError = error
      }
      this.#preferred = (this.#preferred + 1) % this.#bases.length
    }
    const place = this.#bases.join(', ')
    throw centreDown(`${this.#kind}: ${method} failed on ${place} (${messageOf(lastError)})`, lastError)
  }

  close(): void {
    this.#http.close()
  }
}
