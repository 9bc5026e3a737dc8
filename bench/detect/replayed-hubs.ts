import { HubCore, MemoryStore, openRedisStore } from '@firebreak/hub'
import { type DetectionRule, HubDetector } from '@firebreak/testkit'

/** Hosts report every half second, and whatever they send is taken: the replay paces them. */
const pace = {
  reportIntervalMs: 500,
  maxReportsPerSecond: 1e9,
  maxEntriesPerSecond: 1e9,
  loadOf: () => 0,
  random: () => 0.5,
}
let runs = 0

/** A whole hub that a replay drives. */
export function openOneHub(rule: DetectionRule): Promise<HubDetector> {
  return HubDetector.open(rule, 1, ({ hubId, clock }) =>
    HubCore.open(new MemoryStore(), { ...pace, hubId, clock, timers: clock }),
  )
}

/** Three of them that share the hosts and a Redis or Redis Cluster. */
export function openThreeHubs(rule: DetectionRule, url: string): Promise<HubDetector> {
  const prefix = `replay-${runs++}`
  return HubDetector.open(rule, 3, async ({ hubId, clock, sharedClock }) => {
    const store = await openRedisStore(url, { prefix, testClock: sharedClock })
    return HubCore.open(store, { ...pace, hubId, clock, timers: clock })
  })
}
