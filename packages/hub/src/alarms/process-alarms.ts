import { z } from 'zod'
import type { AppGrant } from '../access/credential.ts'
import { processName } from '../fleet/process-name.ts'
import type { ApiRoute } from '../http/api-route.ts'
import type { Alarm } from './alarm-board.ts'
import type { PassingAlarms } from './passing-alarms.ts'

const id = z.string().min(1).max(256)
/** Rooms whose alarms a process may report; the others' alarms are the hub's own. */
const processRooms = ['limits', 'locks', 'ids', 'sale', 'proxy', 'app'] as const

/** What a process reports as currently broken. */
const processAlarmsBody = z.strictObject({
  serviceId: id,
  hostId: id,
  /** Without a newer list for this long, its alarms end. */
  validMs: z.number().int().min(1000).max(600_000).default(30_000),
  alarms: z
    .array(
      z.strictObject({
        room: z.enum(processRooms),
        code: z.string().regex(/^[\w.-]{1,64}$/),
        message: z.string().min(1).max(500),
      }),
    )
    .max(10),
})
type ProcessAlarmsBody = z.infer<typeof processAlarmsBody>

type CheckHost = (grant: AppGrant | undefined, host: { readonly serviceId: string; readonly hostId: string }) => void

/** Processes whose lists are remembered. */
const maxProcesses = 10_000

/** Alarms of rooms that run in other processes, shown on the hub's board while those processes report them. */
export class ProcessAlarms {
  readonly #passing: PassingAlarms
  readonly #check: CheckHost
  /** The alarms of the last list, by service and host. */
  readonly #told = new Map<string, readonly string[]>()

  /** `check` throws if a host may not report. */
  constructor(passing: PassingAlarms, check: CheckHost) {
    this.#passing = passing
    this.#check = check
  }

  /** Takes a process' list: raises new alarms and ends those that are gone. */
  take({ serviceId, hostId, validMs, alarms }: ProcessAlarmsBody): void {
    const process = processName(serviceId, hostId)
    const ids = alarms.map(({ room, code }) => `${room}:${process}/${code}`)
    for (const told of this.#told.get(process) ?? []) if (!ids.includes(told)) this.#passing.end(told)
    this.#told.delete(process)
    if (ids.length > 0) this.#told.set(process, ids)
    if (this.#told.size > maxProcesses) this.#told.delete(this.#told.keys().next().value!)
    for (const [index, { room, message }] of alarms.entries()) {
      const cause = `${room} of ${serviceId} on ${hostId}: ${message}`
      const retry = 'the process clears it when it ends'
      // Never critical: a process must not take the hub out of service.
      const alarm: Alarm = { id: ids[index]!, severity: 'warning', cause, retry }
      this.#passing.show(alarm, validMs, serviceId)
    }
  }

  route(): ApiRoute {
    return {
      method: 'POST',
      path: '/v1/alarms',
      summary: 'Everything that is currently broken in a process: the whole list, empty if nothing is',
      role: 'app',
      body: processAlarmsBody,
      answer: 'nothing',
      status: 204,
      handle: ({ body, caller }) => {
        const report = body as ProcessAlarmsBody
        this.#check(caller.app, report)
        this.take(report)
      },
    }
  }
}
