import type { Shield, ShieldOptions } from '@firebreak/shield'

/** How a client is protected; clients of a process with the same options share one shield. */
export interface ProtectOptions extends ShieldOptions {
  /**
   * The name of the Redis behind the client, the same in every process that uses it: heat is summed per name.
   * @default the address as configured; of a Sentinel group its name; of a cluster its first start-up node
   */
  readonly redisClusterId?: string
  /** Your own shield, for several clients or another lifetime; the other options are then ignored. */
  readonly shield?: Shield
}
