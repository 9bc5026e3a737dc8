import type { AlertDelivery, AlertRouteView, AlertShape, Clock, Timers } from '@firebreak/core'
import type { RetryPolicy } from '@firebreak/core/settings'
import type { HubStore } from '../store/hub-store.ts'
import { type AlarmNotice, hostOf, webhookDefaults } from './alarm-webhooks.ts'
import { AlertOutlet, type AlertResult } from './alert-outlet.ts'

/** A route as stored. */
export interface AlertRoute {
  readonly name: string
  readonly shape: AlertShape
  readonly url: string
  readonly secret?: string | undefined
  readonly severity: 'warning' | 'critical'
  readonly alarms: readonly string[]
  readonly isEnabled: boolean
}

export interface AlertRoutesOptions {
  readonly store: HubStore
  readonly clock: Clock
  readonly timers: Timers
  /** @default that of the webhooks */
  readonly retry?: RetryPolicy
}

const recordKind = 'alert-routes'
export const maxRoutes = 50
const maxDeliveries = 1000

/** Sends alarms along the routes that users configure; every notice is recorded in the delivery log. */
export class AlertRoutes {
  readonly #options: AlertRoutesOptions
  readonly #routes = new Map<
    string,
    { readonly route: AlertRoute; readonly outlet: AlertOutlet; readonly text: string }
  >()
  readonly #deliveries: AlertDelivery[] = []

  constructor(options: AlertRoutesOptions) {
    this.#options = options
  }

  /** Loads the store's routes, including those changed by other hubs. */
  async load(): Promise<void> {
    const kept = await this.#options.store.records(recordKind)
    for (const [name, { outlet, text }] of this.#routes) {
      if (kept.get(name) === text) continue
      outlet.close()
      this.#routes.delete(name)
    }
    for (const [name, text] of kept) if (!this.#routes.has(name)) this.#open(JSON.parse(text) as AlertRoute, text)
  }

  get(name: string): AlertRoute | undefined {
    return this.#routes.get(name)?.route
  }

  get size(): number {
    return this.#routes.size
  }

  /** By name. */
  views(): AlertRouteView[] {
    return [...this.#routes.values()].map(({ route }) => viewOf(route)).sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  async save(route: AlertRoute): Promise<void> {
    await this.#options.store.saveRecord(recordKind, route.name, JSON.stringify(route))
    await this.load()
  }

  async delete(name: string): Promise<void> {
    await this.#options.store.saveRecord(recordKind, name, undefined)
    await this.load()
  }

  /** Notifies every route that the alarm matches. */
  send(notice: AlarmNotice): void {
    const { id, severity } = notice.alarm
    for (const { route, outlet } of this.#routes.values()) {
      const isWanted = route.alarms.length === 0 || route.alarms.some((beginning) => id.startsWith(beginning))
      const isSevere = severity === 'critical' || route.severity === 'warning'
      if (route.isEnabled && isWanted && isSevere) outlet.add(notice)
    }
  }

  /** Sends one notice to one route now, whether it is enabled or not. */
  async test(name: string, notice: AlarmNotice): Promise<AlertDelivery | undefined> {
    const found = this.#routes.get(name)
    return found && this.#deliveryOf(found.route, notice, await found.outlet.test(notice))
  }

  /** Newest first. */
  deliveries(limit: number): AlertDelivery[] {
    return this.#deliveries.toReversed().slice(0, limit)
  }

  close(): void {
    for (const { outlet } of this.#routes.values()) outlet.close()
  }

  #open(route: AlertRoute, text: string): void {
    const { timers, clock, retry = webhookDefaults.retry } = this.#options
    const note = (notice: AlarmNotice, result: AlertResult) => {
      this.#deliveries.push(this.#deliveryOf(route, notice, result))
      if (this.#deliveries.length > maxDeliveries) this.#deliveries.shift()
    }
    const outlet = new AlertOutlet({
      ...webhookDefaults,
      timers,
      clock,
      retry,
      target: route,
      onDropped: () => {},
      onResult: note,
    })
    this.#routes.set(route.name, { route, outlet, text })
  }

  #deliveryOf({ name }: AlertRoute, { event, alarm }: AlarmNotice, result: AlertResult): AlertDelivery {
    return { at: this.#options.clock.now(), route: name, event, alarmId: alarm.id, ...result }
  }
}

export function viewOf({ name, shape, url, severity, alarms, isEnabled, secret }: AlertRoute): AlertRouteView {
  return { name, shape, host: hostOf(url), severity, alarms, isEnabled, hasSecret: secret !== undefined }
}
