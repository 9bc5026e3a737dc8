import { type AppGrant, checkService } from '../access/credential.ts'
import type { BarredSensors } from './barred-sensors.ts'
import type { Fleet } from './fleet.ts'
import { idOf } from './sensor-bounds.ts'

/** The reporter, as it names itself: the service must be one of its token's. */
export interface Teller {
  readonly serviceId: string
  readonly hostId: string
  /** Undefined if a host reports for all its processes. */
  readonly instanceId?: string
}

/**
 * Processes that report locks and alarms over HTTP. The rules for reports apply to these too: the service must be the
 * token's, blocked or cut-off processes are refused, and a token has room for `maxProcesses`, so that a stolen token
 * cannot fill the hub with invented ones.
 */
export class TellerBounds {
  readonly #fleet: Fleet
  readonly #barred: BarredSensors

  constructor(fleet: Fleet, barred: BarredSensors) {
    this.#fleet = fleet
    this.#barred = barred
  }

  /** Throws if the process may not report; `grant` is undefined if there are no tokens. */
  check(what: 'locks' | 'alarms', grant: AppGrant | undefined, teller: Teller, now: number): void {
    const { serviceId, hostId, instanceId } = teller
    if (grant !== undefined) checkService(grant, serviceId)
    if (instanceId === undefined) this.#barred.checkHost(serviceId, hostId)
    else {
      this.#barred.check({ serviceId, hostId, instanceId })
      this.#fleet.bounds.checkCutOff({ serviceId, hostId, instanceId }, now)
    }
    if (grant !== undefined)
      this.#fleet.tellers[what].check(grant, idOf({ serviceId, hostId, instanceId: instanceId ?? '' }), now)
  }
}
