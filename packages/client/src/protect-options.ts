import type { Shield, ShieldOptions } from '@firebreak/shield'

/** How a client is protected; clients of a process with the same options share one shield. */
export interface ProtectOptions extends ShieldOptions {
  /**
   * The name of the Redis behind the client, the same in every process that uses it: heat is summed under it.
   * @default the address as configured; of a Sentinel group its name; of a cluster its first start-up node
   */
  readonly redisClusterId?: string
  /** A shield of your own, for several clients or another life time; the other options then count for nothing. */
  readonly shield?: Shield
}
