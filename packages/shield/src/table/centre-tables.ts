import { type CentreWatch, type ConfigCentre, openCentre } from '@firebreak/centre'
import { type ReadTable, readPublishedTable } from '@firebreak/core'
import { isStreamUrl } from '../hub/hub-address.ts'
import type { HubClock } from '../hub/hub-clock.ts'
import type { HubLink } from '../hub/hub-link.ts'
import type { ResolvedShieldOptions } from '../shield-options.ts'
import type { Trouble } from '../trouble/trouble.ts'
import type { FollowedTable } from './followed-table.ts'

/** What tables from a config centre need. */
export interface CentreTablesOptions {
  readonly url: string
  readonly options: Pick<ResolvedShieldOptions, 'serviceId' | 'instanceId' | 'runtime' | 'hubs'>
  readonly trouble: Trouble
  readonly hubClock: HubClock
  readonly link: Pick<HubLink, 'isOpen' | 'heardAt'>
  readonly table: Pick<FollowedTable, 'epoch' | 'takeSnapshot'>
  /** A table from the centre is about to be applied; `isAlone`: its hub may not know that the switch is on. */
  readonly onTaken: (isAlone: boolean) => void
}

/** The centre's table applies once no hub has been heard for this long. */
const takeOverMs = 2000

/**
 * The table from a config centre, for a process without a hub, or whose hubs do not answer. It is always watched but
 * only applied then: the hub's own is fresher.
 *
 * The same rules as on the socket: within an epoch never an older version, and for another epoch whatever its hub says;
 * but a table of another epoch that was written before this process last heard a hub is older than its current one.
 * Times in the document are wall-clock times, and so is the hub's clock while the centre's table applies: every entry
 * lapses at `validUntil`, unless the document is rewritten.
 */
export class CentreTables {
  readonly #means: CentreTablesOptions
  readonly #centre: ConfigCentre
  readonly #watch: CentreWatch
  #text: string | undefined
  #isFresh = false
  #isInCharge = false
  /** When a hub was last connected, by the wall clock. */
  #hubSeenAt = Number.NEGATIVE_INFINITY

  constructor(means: CentreTablesOptions) {
    this.#means = means
    const { url, trouble } = means
    const { serviceId, runtime } = means.options
    this.#centre = openCentre(url, { option: 'tables', runtime, keepsAlive: false })
    const path = `${this.#centre.root}/${encodeURIComponent(serviceId)}`
    this.#watch = this.#centre.watch(path, {
      onText: trouble.guarded((text: string | undefined) => {
        // A deleted table stays valid until it expires, as does one that the centre cannot return.
        if (text === undefined) return
        this.#text = text
        this.#isFresh = true
        this.tick()
      }),
      onDown: (error) => {
        const what = `the table cannot be read from ${this.#centre.name} (${error.message}); the current one stays in force until it expires`
        trouble.note('tables-unreachable', what, error)
      },
      onUp: () => trouble.clear('tables-unreachable'),
    })
  }

  /** True while the centre's table applies: no hub answers. */
  get isInCharge(): boolean {
    return this.#isInCharge
  }

  /** Applies the table while no hub is heard. */
  tick(): void {
    const { link, options } = this.#means
    const { clock, wallClock } = options.runtime
    if (link.isOpen) this.#hubSeenAt = wallClock.now()
    const hasHubs = !options.hubs.every(isStreamUrl)
    const isInCharge = !link.isOpen && (!hasHubs || clock.now() - link.heardAt > takeOverMs)
    if (isInCharge && (this.#isFresh || !this.#isInCharge)) this.#take()
    this.#isInCharge = isInCharge
  }

  close(): void {
    this.#watch.close()
    this.#centre.close().catch((error) => this.#means.trouble.failed(error))
  }

  #take(): void {
    const { options, hubClock, table, trouble, onTaken } = this.#means
    if (this.#text === undefined) return
    this.#isFresh = false
    const read = readPublishedTable(this.#text, options.instanceId)
    if (read === undefined) {
      trouble.note(
        'tables-broken',
        `the document in ${this.#centre.name} for ${options.serviceId} is not a table; ignoring it`,
      )
      return
    }
    if (!this.#isToBeTaken(read)) return
    const { clock, wallClock } = options.runtime
    onTaken(read.isAlone)
    hubClock.restart(wallClock.now() - clock.now())
    table.takeSnapshot(() => read.snapshot)
  }

  #isToBeTaken({ snapshot, validUntil, writtenAt }: ReadTable): boolean {
    const { options, table } = this.#means
    if (options.runtime.wallClock.now() >= validUntil) return false
    return snapshot.epoch === table.epoch || writtenAt > this.#hubSeenAt
  }
}
