import { FirebreakError } from '@firebreak/core'
import { startHub } from '@firebreak/hub'
import { Redis } from 'ioredis'
import { HubApi } from '../hub-api/hub-api.ts'
import { openRedis } from '../redis-source/redis-source.ts'
import { DrillFleet } from './drill-fleet.ts'
import { type DrillResult, DrillRun, windowMs } from './drill-run.ts'

/** What is drilled. */
export interface DrillOptions {
  readonly rounds: number
  readonly clients: number
  /** Accesses a second over all clients at which the key is hot. */
  readonly threshold: number
  /** A Redis to drill on. @default one started for the drill */
  readonly redisUrl?: string | undefined
  /** Hubs to drill on; a rule for `drill:` keys is put there. @default one hub started for the drill */
  readonly hubUrls?: readonly string[] | undefined
  readonly signal?: AbortSignal
  readonly onProgress?: (text: string) => void
}

/** Runs the drill: round after round a new key becomes hot on all clients at once. */
export async function runDrill(options: DrillOptions): Promise<DrillResult> {
  const { rounds, clients, threshold, onProgress = () => {} } = options
  if (clients < 2) {
    throw new FirebreakError(
      'FB_DRILL',
      `${clients} client cannot show it: with 2 or more, none crosses the threshold alone`,
    )
  }
  const source = await openRedis({ url: options.redisUrl })
  const hub = options.hubUrls === undefined ? await startHub({ logLevel: 'error' }) : undefined
  const hubUrls = options.hubUrls ?? [hub!.url]
  const api = new HubApi(hubUrls[0]!)
  const writer = new Redis(source.url)
  let fleet: DrillFleet | undefined
  try {
    await api.call('PUT', '/v1/rules/drill', { prefix: 'drill:', threshold, windowMs, strategy: 'LocalCache' })
    fleet = await DrillFleet.start(clients, source.url, hubUrls)
    onProgress(`${clients} clients on ${source.description}; hub ${hubUrls.join(', ')}`)
    const run = new DrillRun(threshold, fleet, writer, api)
    for (let round = 1; round <= rounds && !options.signal?.aborted; round++) onProgress(await run.round(round))
    await run.control(Math.min(3, rounds))
    return run.result(source.description)
  } finally {
    await fleet?.close()
    writer.disconnect()
    await hub?.close()
    await source.stop()
  }
}
