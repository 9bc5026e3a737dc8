import type { Runtime, TimerHandle } from '@firebreak/core'
import { OrderStoreError } from '../errors.ts'
import type { OrderEvent, OrderStore, StoreResult } from '../store/order-store.ts'

/** How storing ended: with results, or with a fault in the data. An outage is thrown. */
export type StoreOutcome =
  | { readonly kind: 'results'; readonly results: readonly StoreResult[] }
  | { readonly kind: 'fault'; readonly error: Error }

/** The order store behind a deadline, with failures classified: the events' fault, or the store's. */
export class GuardedStore {
  readonly #store: OrderStore
  readonly #timeoutMs: number
  readonly #runtime: Runtime

  constructor(store: OrderStore, timeoutMs: number, runtime: Runtime) {
    this.#store = store
    this.#timeoutMs = timeoutMs
    this.#runtime = runtime
  }

  /** Throws only an `OrderStoreError` about an outage. */
  async store(voucherId: string, events: readonly OrderEvent[]): Promise<StoreOutcome> {
    try {
      return { kind: 'results', results: await this.#inTime(this.#store.store(events)) }
    } catch (thrown) {
      const error = errorOf(thrown)
      if (error instanceof OrderStoreError) {
        if (error.isOutage) throw error
        return { kind: 'fault', error }
      }
      // A user's own store, whose errors cannot be classified: it is the events' fault only if the store otherwise
      // answers.
      await this.#blame(voucherId, error)
      return { kind: 'fault', error }
    }
  }

  async setTotal(voucherId: string, total: number): Promise<void> {
    try {
      await this.#inTime(this.#store.setTotal(voucherId, total))
    } catch (thrown) {
      throw outage(errorOf(thrown))
    }
  }

  /** Throws an outage unless the store answers a harmless query. */
  async probe(voucherId: string): Promise<void> {
    try {
      await this.#inTime(this.#store.count(voucherId))
    } catch (thrown) {
      throw outage(errorOf(thrown))
    }
  }

  async #blame(voucherId: string, error: Error): Promise<void> {
    try {
      await this.#inTime(this.#store.store([]))
      await this.#inTime(this.#store.count(voucherId))
    } catch {
      throw outage(error)
    }
  }

  /** A database that never answers is down; its late work is repeated, which changes nothing. */
  async #inTime<T>(work: Promise<T>): Promise<T> {
    let timer: TimerHandle | undefined
    const late = new Promise<never>((_, reject) => {
      timer = this.#runtime.timers.setTimeout(() => {
        const message = `the order store did not answer for ${this.#timeoutMs} ms`
        reject(new OrderStoreError('FB_SALE_STORE_DOWN', message))
      }, this.#timeoutMs)
    })
    try {
      return await Promise.race([work, late])
    } finally {
      timer?.cancel()
    }
  }
}

/** A user's own store may throw anything. */
function errorOf(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}

function outage(error: Error): OrderStoreError {
  if (error instanceof OrderStoreError && error.isOutage) return error
  return new OrderStoreError('FB_SALE_STORE_DOWN', `the order store is down: ${error.message}`, { cause: error })
}
