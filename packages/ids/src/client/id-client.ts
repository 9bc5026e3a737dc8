import { describeValue, InvalidOptionError, type Runtime, systemRuntime } from '@firebreak/core'
import { IdsError, messageOf } from '../errors.ts'
import { maxIdsPerRequest } from '../service/id-service.ts'
import { fetchJson } from '../time/fetch-json.ts'
import { requireAbove0 } from '../time/require-above-0.ts'

/** How ids are fetched from an id service. */
export interface IdClientOptions {
  /** The service's address, such as `http://127.0.0.1:8080`; several are tried in turn. */
  readonly url: string | readonly string[]
  /** A segment's tag; without one the ids are snowflakes. */
  readonly tag?: string
  /** How many ids one request fetches, up to the service's maximum of 10,000. @default 1000 */
  readonly batch?: number
  /** The next batch is fetched when less than this fraction is left. @default 0.5 */
  readonly refillAt?: number
  /** Fetched ids are dropped after this, so that the times in snowflakes are not too old. @default never */
  readonly maxAgeMs?: number
  /** The service's token. @default none */
  readonly token?: string
  /** For one request. @default 3000 */
  readonly requestTimeoutMs?: number
  /** @default the system's */
  readonly runtime?: Runtime
}

interface Waiter {
  resolve(id: string): void
  reject(error: Error): void
}

/**
 * A client of an id service that prefetches ids: most calls are answered from memory, and a brief outage of the service
 * goes unnoticed. Callers that find the memory empty share the running request. Ids that were fetched but not used are
 * gaps.
 */
export class IdClient {
  readonly #urls: readonly string[]
  readonly #path: string
  readonly #batch: number
  readonly #refillBelow: number
  readonly #maxAgeMs: number
  readonly #token: string | undefined
  readonly #requestTimeoutMs: number
  readonly #runtime: Runtime
  #ids: string[] = []
  #at = 0
  #ready: string[] | undefined
  #fetchedAt = 0
  #isFetching = false
  #waiters: Waiter[] = []
  #nextUrl = 0

  constructor(options: IdClientOptions) {
    this.#urls = [options.url].flat().map((url) => url.replace(/\/+$/, ''))
    this.#batch = options.batch ?? 1000
    const share = options.refillAt ?? 0.5
    if (!Number.isInteger(this.#batch) || this.#batch < 1 || this.#batch > maxIdsPerRequest) {
      throw new InvalidOptionError('batch', options.batch, `a whole number from 1 to ${maxIdsPerRequest}`)
    }
    if (!(share >= 0 && share <= 1)) throw new InvalidOptionError('refillAt', options.refillAt, 'from 0 to 1')
    if (this.#urls.length === 0 || !this.#urls.every(isHttp)) {
      throw new InvalidOptionError('url', options.url, 'at least one address, such as http://127.0.0.1:8070')
    }
    if (options.maxAgeMs !== undefined && !(options.maxAgeMs > 0)) {
      throw new InvalidOptionError('maxAgeMs', options.maxAgeMs, 'a number of milliseconds above 0')
    }
    const kind = options.tag === undefined ? 'snowflake/get/client' : `segment/get/${encodeURIComponent(options.tag)}`
    this.#path = `/api/${kind}?count=${this.#batch}`
    this.#refillBelow = this.#batch * share
    this.#maxAgeMs = options.maxAgeMs ?? Number.POSITIVE_INFINITY
    this.#token = options.token
    this.#requestTimeoutMs = requireAbove0('requestTimeoutMs', options.requestTimeoutMs ?? 3000)
    this.#runtime = options.runtime ?? systemRuntime
  }

  /** How many ids are in memory. */
  get left(): number {
    return this.#ids.length - this.#at + (this.#ready?.length ?? 0)
  }

  /** An id that is in memory, or undefined: then `next`. */
  take(): string | undefined {
    if (this.#maxAgeMs !== Number.POSITIVE_INFINITY) this.#dropOld()
    if (this.#at === this.#ids.length) {
      if (this.#ready === undefined) return undefined
      this.#ids = this.#ready
      this.#at = 0
      this.#ready = undefined
    }
    const id = this.#ids[this.#at++]!
    if (this.#ready === undefined && this.#ids.length - this.#at < this.#refillBelow) this.#fetch()
    return id
  }

  /** The next id. */
  async next(): Promise<string> {
    const id = this.take()
    if (id !== undefined) return id
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject })
      this.#fetch()
    })
  }

  #dropOld(): void {
    if (this.#runtime.clock.now() - this.#fetchedAt <= this.#maxAgeMs) return
    this.#ids = []
    this.#at = 0
    this.#ready = undefined
  }

  #fetch(): void {
    if (this.#isFetching) return
    this.#isFetching = true
    this.#request().then(
      (ids) => {
        this.#isFetching = false
        this.#fetchedAt = this.#runtime.clock.now()
        this.#ready = ids
        while (this.#waiters.length > 0) {
          const id = this.take()
          if (id === undefined) return this.#fetch()
          this.#waiters.shift()!.resolve(id)
        }
      },
      (error: Error) => {
        this.#isFetching = false
        for (const waiter of this.#waiters.splice(0)) waiter.reject(error)
      },
    )
  }

  async #request(): Promise<string[]> {
    let lastError: unknown
    for (let tried = 0; tried < this.#urls.length; tried++) {
      const url = this.#urls[this.#nextUrl % this.#urls.length]!
      try {
        return await this.#requestFrom(url)
      } catch (error) {
        this.#nextUrl++
        lastError = error
      }
    }
    throw new IdsError(
      'FB_IDS_SERVICE_DOWN',
      `no id service of ${this.#urls.join(', ')} gave ids (${messageOf(lastError)})`,
      { path: this.#path },
      { cause: lastError },
    )
  }

  async #requestFrom(url: string): Promise<string[]> {
    const headers: Record<string, string> = this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }
    const { timers } = this.#runtime
    const { isOk, status, body } = await fetchJson(url + this.#path, timers, this.#requestTimeoutMs, { headers })
    if (!isOk) throw new Error((body as { message?: string } | null)?.message ?? `status ${status}`)
    if (!Array.isArray(body) || body.length === 0) throw new Error('an answer without ids')
    // A number has already lost digits, and two ids may have become one.
    const wrong = (body as unknown[]).find((id) => typeof id !== 'string' || !/^\d{1,19}$/.test(id))
    if (wrong !== undefined) throw new Error(`an answer with ${describeValue(wrong)} instead of an id as a string`)
    return body as string[]
  }
}

function isHttp(url: string): boolean {
  return /^https?:\/\//i.test(url) && URL.canParse(url)
}
