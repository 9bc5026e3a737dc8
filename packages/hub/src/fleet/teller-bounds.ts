import { type AppGrant, checkService } from '../access/credential.ts'
import type { BarredSensors } from './barred-sensors.ts'
import type { Fleet } from './fleet.ts'
import { idOf } from './sensor-bounds.ts'

/** Who tells, by its own word: the service must be its token's. */
export interface Teller {
  readonly serviceId: string
  readonly hostId: string
  /** Undefined where a host speaks for all its processes. */
  readonly instanceId?: string
}

/**
 * Processes that tell of themselves over HTTP, beside reports: of their locks and their alarms. What holds for reports holds
 * for these too: the service is the token's, a process that is barred or cut off is not heard, and a token has room for as
 * many as its `maxProcesses`, so that whoever stole it cannot fill the hub in the name of invented ones.
 */
export class TellerBounds {
  readonly #fleet: Fleet
  readonly #barred: BarredSensors

  constructor(fleet: Fleet, barred: BarredSensors) {
    this.#fleet = fleet
    this.#barred = barred
  }

  /** Throws where the process may not tell; `grant` is undefined where there are no tokens. */
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
