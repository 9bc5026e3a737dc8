import { FirebreakError } from '@firebreak/core'
import { startHub } from '@firebreak/hub'
import { HubApi } from '../hub-api/hub-api.ts'
import { redisClient } from '../redis-source/redis-client.ts'
import { openRedis } from '../redis-source/redis-source.ts'
import { DrillFleet } from './drill-fleet.ts'
import { type DrillResult, DrillRun, windowMs } from './drill-run.ts'

/** What to drill. */
export interface DrillOptions {
  readonly rounds: number
  readonly clients: number
  /** Accesses per second, over all clients, at which the key is hot. */
  readonly threshold: number
  /** A Redis to drill on. @default one started for the drill */
  readonly redisUrl?: string | undefined
  /** Hubs to drill on; they get a rule for `drill:` keys. @default one hub started for the drill */
  readonly hubUrls?: readonly string[] | undefined
  /** The token for the hub. @default none */
  readonly token?: string | undefined
  readonly signal?: AbortSignal
  readonly onProgress?: (text: string) => void
}

/** Runs the drill: round after round a new key becomes hot on all clients at once. */
export async function runDrill(options: DrillOptions): Promise<DrillResult> {
  const { rounds, clients, threshold, onProgress = () => {} } = options
  if (clients < 2) {
    throw new FirebreakError(
      'FB_DRILL',
      `${clients} client cannot show it: use at least 2, so that none crosses the threshold alone`,
    )
  }
  const source = await openRedis({ url: options.redisUrl })
  const hub = options.hubUrls === undefined ? await startHub({ logLevel: 'error' }) : undefined
  const hubUrls = options.hubUrls ?? [hub!.url]
  const api = new HubApi([hubUrls[0]!], options.token)
  const writer = redisClient(source)
  let fleet: DrillFleet | undefined
  try {
    // Above the rules of a hub that is already in use.
    const rule = { prefix: 'drill:', threshold, windowMs, strategy: 'LocalCache', priority: 1000 }
    await api.call('PUT', '/v1/rules/drill', rule)
    fleet = await DrillFleet.start(clients, { targets: source.targets, isCluster: source.isCluster }, hubUrls)
    onProgress(`${clients} clients on ${source.description}; hub ${hubUrls.join(', ')}`)
    const run = new DrillRun(threshold, fleet, writer, api)
    const wholeRun = async () => {
      for (let round = 1; round <= rounds; round++) onProgress(await run.round(round))
      await run.control(Math.min(3, rounds))
      return run.result(source.description)
    }
    return await Promise.race([wholeRun(), endedEarly(options.signal)])
  } finally {
    await fleet?.close()
    // Removes the drill's rule from a hub that stays; an earlier error matters more than a failure here.
    if (hub === undefined) await api.call('DELETE', '/v1/rules/drill').catch(() => {})
    writer.disconnect()
    await hub?.close()
    await source.stop()
  }
}

/** Rejects when the drill is stopped: its clients are then stopped at once, whatever the step. */
function endedEarly(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    const end = () => reject(new FirebreakError('FB_DRILL', 'stopped before its last round'))
    if (signal?.aborted) end()
    else signal?.addEventListener('abort', end, { once: true })
  })
}
