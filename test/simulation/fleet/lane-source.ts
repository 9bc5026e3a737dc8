import type { HubCore } from '@firebreak/hub'
import { type SimulatedProcess, SimulatedRedis, type VirtualNetwork } from '@firebreak/testkit'
import { mainRedis } from './simulated-app.ts'

/** What writes of the fleet say of themselves; `flushall` and what it empties are told by the lost connection. */
const events = ['incrby', 'hincrby', 'rpush', 'set', 'expired', 'del']
/** How often it checks that everything so far was received. */
const markEveryMs = 100
const markChannel = 'lane-mark'

/**
 * A hub's source of changes with `guards: true`, in the place of a replica stream, which a Valkey without sockets of its own
 * does not have: notifications of the server, and marks that come back behind them on the same connection. What a lost
 * connection did not bring is a flush.
 */
export async function openLaneSource(process: SimulatedProcess, network: VirtualNetwork, core: HubCore): Promise<void> {
  const { clock } = process.runtime
  const redis = new SimulatedRedis(process, network, mainRedis, { commandTimeoutMs: 1000 })
  let completeAt = Number.NEGATIVE_INFINITY
  core.watchers.watched = () => {
    const completeAgoMs = clock.now() - completeAt
    return Number.isFinite(completeAgoMs) ? [{ redisClusterId: 'main', completeAgoMs }] : []
  }
  const cluster = { redisClusterId: 'main', database: 0 }
  const changed = (key: string): void => void core.lane.publish({ ...cluster, kind: 'keys', items: [{ key }] })
  const missed = (): void => void core.lane.publish({ ...cluster, kind: 'flush', items: [] })
  const own = process.runtime.newId()
  const markOf = (text: string): number => {
    const [by, at] = text.split(' ')
    return by === own ? Number(at) : Number.NEGATIVE_INFINITY
  }
  const subscriber = await redis.subscriber()
  subscriber.onReconnect(missed)
  const subscribed = events.map((event) => subscriber.subscribe(`__keyevent@0__:${event}`, changed))
  // After the others: when a mark arrives, all of them were sent before.
  subscribed.push(subscriber.subscribe(markChannel, (text) => void (completeAt = Math.max(completeAt, markOf(text)))))
  await Promise.all(subscribed)
  for (;;) {
    // A lost mark is one that does not arrive.
    redis.send(['PUBLISH', markChannel, `${own} ${clock.now()}`]).catch(() => {})
    await process.sleep(markEveryMs)
  }
}
