import { z } from 'zod'
import { ApiProblem } from '../errors.ts'
import type { ApiRoute } from '../http/api-route.ts'
import type { HubStore } from '../store/hub-store.ts'
import type { Instance } from './host-register.ts'
import { processName } from './process-name.ts'
import { idOf } from './sensor-bounds.ts'

/** A process blocked by a user. */
export interface BarredView {
  /** `service/host/process`. */
  readonly id: string
  readonly who: string
  readonly why: string
  readonly at: number
}

const recordKind = 'barred'
const maxBarred = 10_000

/** A blocked process sent something. */
export class SensorBarredError extends ApiProblem {
  constructor(why: string) {
    super(403, 'FB_SENSOR_BARRED', `this process is blocked by the hub: ${why}`)
  }
}

/** Blocked processes, in the store that all hubs share. */
export class BarredSensors {
  readonly #store: HubStore
  readonly #barred = new Map<string, BarredView>()

  constructor(store: HubStore) {
    this.#store = store
  }

  /** Reads what other hubs have changed. */
  async load(): Promise<void> {
    const records = await this.#store.records(recordKind)
    for (const id of this.#barred.keys()) if (!records.has(id)) this.#barred.delete(id)
    for (const [id, text] of records) this.#barred.set(id, JSON.parse(text) as BarredView)
  }

  list(): BarredView[] {
    return [...this.#barred.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  /** Throws if the process is blocked. */
  check(instance: Pick<Instance, 'serviceId' | 'hostId' | 'instanceId'>): void {
    if (this.#barred.size === 0) return
    const barred = this.#barred.get(idOf(instance))
    if (barred !== undefined) throw new SensorBarredError(barred.why)
  }

  /** The same for a host that reports for all its processes of a service: throws if one of them is blocked. */
  checkHost(serviceId: string, hostId: string): void {
    const host = processName(serviceId, hostId, '')
    for (const { id, why } of this.#barred.values()) if (id.startsWith(host)) throw new SensorBarredError(why)
  }

  async bar(view: BarredView): Promise<void> {
    if (this.#barred.size >= maxBarred) {
      throw new ApiProblem(409, 'FB_INPUT_INVALID', `there are ${maxBarred} blocked processes, the maximum`, 'id')
    }
    await this.#store.saveRecord(recordKind, view.id, JSON.stringify(view))
    this.#barred.set(view.id, view)
  }

  async unbar(id: string): Promise<BarredView> {
    const known = this.#barred.get(id)
    if (known === undefined) throw new ApiProblem(404, 'FB_NOT_FOUND', `${JSON.stringify(id)} is not blocked`, 'id')
    await this.#store.saveRecord(recordKind, id, undefined)
    this.#barred.delete(id)
    return known
  }
}

const barBody = z.strictObject({
  id: z
    .string()
    .regex(/^[^/]+\/[^/]+\/.+$/, 'must be service/host/process, as in /v1/hosts')
    .max(800),
  why: z.string().max(200).default('by an operator'),
})

export interface BarredRoutesOptions {
  readonly barred: BarredSensors
  readonly now: () => number
  readonly audit: (who: string, what: string, before: unknown, after: unknown) => Promise<void>
  /** Closes the connections of blocked processes. */
  readonly onChange: () => void
}

/** Operators block and unblock processes. */
export function barredRoutes({ barred, now, audit, onChange }: BarredRoutesOptions): ApiRoute[] {
  return [
    {
      method: 'GET',
      path: '/v1/barred',
      summary: 'Blocked processes',
      role: 'viewer',
      answer: '{ barred: BarredView[] }',
      handle: () => ({ barred: barred.list() }),
    },
    {
      method: 'POST',
      path: '/v1/barred',
      summary: 'Blocks a process: its connection is closed, and its reports are ignored',
      role: 'operator',
      body: barBody,
      answer: 'BarredView',
      status: 201,
      async handle({ body, caller }) {
        const { id, why } = body as z.infer<typeof barBody>
        const view = { id, why, who: caller.who, at: now() }
        await barred.bar(view)
        onChange()
        await audit(caller.who, `bar ${id}`, null, view)
        return view
      },
    },
    {
      method: 'DELETE',
      path: '/v1/barred/:id',
      summary: 'Unblocks a process',
      role: 'operator',
      answer: 'nothing',
      status: 204,
      async handle({ params, caller }) {
        const before = await barred.unbar(params['id']!)
        await audit(caller.who, `unbar ${before.id}`, before, null)
      },
    },
  ]
}
