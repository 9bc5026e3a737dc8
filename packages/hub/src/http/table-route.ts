import { type StrategyList, type TableEntry, toStrategyList } from '@firebreak/core'
import { isInRollout } from '@firebreak/core/rules'
import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import { type AppGrant, checkCluster, checkService } from '../access/credential.ts'
import { matchesAny } from '../access/name-pattern.ts'
import { ApiProblem } from '../errors.ts'
import type { HubCore } from '../hub-core.ts'
import { byCluster } from '../publish/table-publisher.ts'
import type { ApiCall, ApiRoute } from './api-route.ts'

/** The table of one service, for processes without a shield. */
export interface ServiceTable {
  readonly epoch: string
  readonly version: number
  /** True while the kill switch is on: nobody acts on anything. */
  readonly isOff: boolean
  /** How long the reader may use it after its arrival; without a newer answer by then it must not act on anything. */
  readonly validMs: number
  /** How often the hub wants reports. */
  readonly intervalMs: number
  /** The strategies with their keys, by the cluster that the keys are on. */
  readonly clusters: Readonly<Record<string, StrategyList>>
}

const name = z.string().min(1).max(256).optional()
const tableQuery = z.strictObject({
  service: name,
  cluster: name,
  instance: name,
  epoch: z.string().max(256).optional(),
  version: z.coerce.number().int().min(0).optional(),
  // Shorter than a port's idle timeout.
  waitMs: z.coerce.number().int().min(0).max(60_000).default(0),
})
type TableQuery = z.infer<typeof tableQuery>

/**
 * The strategy table: the whole table for users, one service's for its app token. With `version`, and `epoch` if there
 * are several hubs, the response waits until the table differs from that, at most `waitMs`.
 */
export function tableRoute(core: HubCore): ApiRoute {
  const waits = new TableWaits(core)
  return {
    method: 'GET',
    path: '/v1/table',
    summary: 'The strategy table, or that of one service; with version and waitMs it waits for a newer one',
    role: 'app or viewer',
    query: tableQuery,
    answer: '{ epoch: string, version: number, isOff: boolean, strategies: StrategyList } | ServiceTable',
    async handle({ query, caller, reply }: ApiCall) {
      const asked = query as TableQuery
      const { service, version, epoch, waitMs } = asked
      const { delivery } = core
      if (service === undefined) {
        refuseWithoutService(asked, caller.app)
        return {
          epoch: delivery.epoch,
          version: delivery.version,
          isOff: delivery.isOff,
          strategies: toStrategyList(delivery.entries()),
        }
      }
      if (caller.app !== undefined) {
        checkService(caller.app, service)
        if (asked.cluster !== undefined) checkCluster(caller.app, asked.cluster)
      }
      refuseUnheard(core)
      // A single look does not make the reader a process of the service.
      const isProcess = caller.app !== undefined || asked.instance !== undefined || waitMs > 0
      if (isProcess) core.fleet.hosts.seeReader(service, waitMs, core.now())
      delivery.flush()
      const isKnown = version === delivery.view(service).version && (epoch ?? delivery.epoch) === delivery.epoch
      if (isKnown && waitMs > 0) await waits.forChange(service, waitMs, reply)
      if (!caller.isValid()) {
        const message = 'the token was revoked or expired while the call waited; use another'
        throw new ApiProblem(401, 'FB_TOKEN_REFUSED', message, 'Authorization')
      }
      return tableOf(core, service, asked, caller.app)
    },
  }
}

function tableOf(core: HubCore, service: string, asked: TableQuery, app: AppGrant | undefined): ServiceTable {
  const { delivery, collector, options } = core
  const { epoch, isOff } = delivery
  const view = delivery.view(service)
  const isMeant = ({ redisClusterId, onlyInstance, ruleId, rollout }: TableEntry) =>
    redisClusterId === (asked.cluster ?? redisClusterId) &&
    (app === undefined || matchesAny(app.clusters, redisClusterId)) &&
    (onlyInstance === undefined || onlyInstance === asked.instance) &&
    // A reader that does not identify itself takes no part in roll-outs.
    (rollout === undefined || (asked.instance !== undefined && isInRollout(ruleId, rollout, asked.instance)))
  const clusters = byCluster([...view.entries()].filter(isMeant))
  const { intervalMs } = collector.governor.pace
  return { epoch, version: view.version, isOff, validMs: options.entryTtlMs, intervalMs, clusters }
}

/** Calls that wait for a change, at most `maxTableWaits`. */
class TableWaits {
  readonly #core: HubCore
  #count = 0

  constructor(core: HubCore) {
    this.#core = core
  }

  /** Resolves at the service's next change, after `waitMs`, or when the caller is gone. */
  async forChange(service: string, waitMs: number, reply: FastifyReply): Promise<void> {
    const { delivery, options } = this.#core
    const { maxTableWaits, runtime } = options
    if (this.#count >= maxTableWaits) {
      const message = `${maxTableWaits} calls are already waiting for a table (maxTableWaits); ask without waitMs`
      throw new ApiProblem(429, 'FB_TABLE_WAITS_FULL', message, 'waitMs')
    }
    const { listeners } = delivery.view(service)
    const { promise, resolve } = Promise.withResolvers<void>()
    const listener = { onDelta: () => resolve() }
    const timer = runtime.timers.setTimeout(resolve, waitMs)
    reply.raw.once('close', resolve)
    listeners.add(listener)
    this.#count++
    try {
      await promise
    } finally {
      this.#count--
      listeners.delete(listener)
      reply.raw.off('close', resolve)
      timer.cancel()
    }
  }
}

/** Parameters that narrow a service's table require a service, and an app may not read the whole table. */
function refuseWithoutService(asked: TableQuery, app: AppGrant | undefined): void {
  const narrowing = (['cluster', 'instance', 'epoch', 'version'] as const).find((field) => asked[field] !== undefined)
  if (app === undefined && narrowing === undefined && asked.waitMs === 0) return
  const why = app === undefined ? `${narrowing ?? 'waitMs'} belongs to it` : 'an app token reads one service’s table'
  throw new ApiProblem(400, 'FB_INPUT_INVALID', `query.service is missing: ${why}`, 'query.service')
}

/** An empty table would remove what its reader has from another hub. */
function refuseUnheard({ isHeard, delivery }: HubCore): void {
  if (isHeard || delivery.isOff) return
  const message = 'the hub has not heard from its store since it started, and knows no rules; ask another hub'
  throw new ApiProblem(503, 'FB_STORE_AWAY', message)
}
