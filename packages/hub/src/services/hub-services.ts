import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { IdService, openSegmentStore, SegmentIds, SnowflakeNode } from '@firebreak/ids'
import { parsePolicy, RuleService, type RuleStore } from '@firebreak/limits/policy'
import { findingRoutes } from '../findings/finding-routes.ts'
import type { HubPlugin } from '../http/hub-server.ts'
import { IdsAlarms } from '../ids/ids-alarms.ts'
import { idsRoutes } from '../ids/ids-routes.ts'
import { limitsRoutes } from '../limits/limits-routes.ts'
import { PolicyKeeper } from '../limits/policy-keeper.ts'
import { lockRoutes } from '../locks/lock-routes.ts'
import { type SaleDesk, salePlugin } from '../sale/sale-routes.ts'
import { explainStoreTrouble, storeName } from '../store/store-trouble.ts'

/** The services that a hub offers beside the loop. */
export interface HubServicesOptions {
  /** Where ids are kept (`ids.sqlite`, `snowflake.json`). @default in memory: a restart starts over */
  readonly dataFolder?: string
  /** A rate-limit policy file, the initial policy of a store that never had one. @default no rules */
  readonly policyFile?: string
  /** Where rate limits are counted. @default in this process */
  readonly counters?: RuleStore
  /** Also answer under Koala's own paths, where a GET counts and needs an operator. @default false */
  readonly koalaPaths?: boolean
  /** The worker id for snowflakes, 0 to 1023, different for each hub. @default no snowflakes */
  readonly workerId?: number
  /** The console's source for flash sales. @default none: it explains how to configure one */
  readonly sale?: SaleDesk
}

/** The services as plug-ins of `startHub`. */
export interface HubServices {
  readonly plugins: readonly HubPlugin[]
  /** Makes the policy file the next version; returns the version in force. Rejects if the file is invalid. */
  readonly reloadPolicy: () => Promise<number>
  close(): Promise<void>
}

/** Opens the rate-limit rules, ids, lock board, sale and findings. */
export async function openHubServices(options: HubServicesOptions = {}): Promise<HubServices> {
  const { dataFolder, policyFile, workerId } = options
  const limits = new RuleService(options.counters === undefined ? {} : { store: options.counters })
  const readPolicy =
    policyFile === undefined ? undefined : () => ({ text: readFileSync(policyFile, 'utf8'), file: policyFile })
  // Read before anything is opened: an invalid file is reported at once.
  const source = readPolicy?.()
  const first = source && { policy: parsePolicy(source.text, source.file), origin: source.file }
  let keeper: PolicyKeeper | undefined
  // These come before the hub's own store, which would also create the folder.
  if (dataFolder !== undefined) mkdirSync(dataFolder, { recursive: true, mode: 0o700 })
  const store = await openSegmentStore(
    dataFolder === undefined ? 'sqlite::memory:' : `sqlite:${join(dataFolder, 'ids.sqlite')}`,
  )
  const alarms = new IdsAlarms()
  const segments = await SegmentIds.start({ stores: [store], onAlarm: alarms.tell })
  const snowflake =
    workerId === undefined
      ? undefined
      : await SnowflakeNode.start({
          workerId,
          onAlarm: alarms.tell,
          ...(dataFolder !== undefined && { cacheFile: join(dataFolder, 'snowflake.json') }),
        })
  const ids = new IdService({ segments, ...(snowflake !== undefined && { snowflake }) })
  return {
    plugins: [
      async (app, { store: hubStore, runtime, whoOf, passingAlarms }) => {
        keeper = new PolicyKeeper(limits, hubStore, runtime, (error) => {
          app.log.warn(error, 'the policy was not read')
          const cause = `limits: cannot read the policy from ${storeName(hubStore)}: ${explainStoreTrouble(error)}`
          const retry = 'every second; the last policy read stays in force'
          passingAlarms.show({ id: 'limits:policy', severity: 'warning', cause, retry })
        })
        await keeper.open(first)
        const { change } = keeper
        const koalaPaths = options.koalaPaths ?? false
        await app.register(limitsRoutes, {
          service: limits,
          change,
          whoOf,
          koalaPaths,
          ...(readPolicy && { readPolicy }),
        })
      },
      async (app, hub) => {
        alarms.showOn(hub.alarms, ids)
        await app.register(idsRoutes, {
          service: ids,
          addTag: (tag, step) => segments.addTag(tag, { step, description: 'added at the hub' }),
          audit: (request, what, after) => hub.audit(hub.whoOf(request), what, null, after),
        })
      },
      async (app, { outside, checkTeller, whoOf, audit, passingAlarms: alarms }) =>
        void (await app.register(lockRoutes, { outside, checkTeller, whoOf, audit, alarms })),
      salePlugin(options.sale),
      async (app, { outside }) => void (await app.register(findingRoutes, { outside })),
    ],
    async reloadPolicy() {
      const read = readPolicy?.()
      if (read === undefined || keeper === undefined) return limits.version
      return keeper.change({ policy: parsePolicy(read.text, read.file), origin: read.file, who: 'SIGHUP' })
    },
    async close() {
      keeper?.close()
      alarms.close()
      await snowflake?.close()
      await segments.close()
    },
  }
}
