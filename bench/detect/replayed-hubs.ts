import { HubCore, MemoryStore, openRedisStore } from '@firebreak/hub'
import { type DetectionRule, HubDetector } from '@firebreak/testkit'

let runs = 0

/** A whole hub that a replay drives. */
export function openOneHub(rule: DetectionRule): Promise<HubDetector> {
  return HubDetector.open(rule, 1, ({ options }) => HubCore.open(new MemoryStore(), options))
}

/** Three of them that share the hosts and a Redis or Redis Cluster. */
export function openThreeHubs(rule: DetectionRule, url: string): Promise<HubDetector> {
  const prefix = `replay-${runs++}`
  return HubDetector.open(rule, 3, async ({ options, sharedClock }) =>
    HubCore.open(await openRedisStore(url, { prefix, testClock: sharedClock }), options),
  )
}
