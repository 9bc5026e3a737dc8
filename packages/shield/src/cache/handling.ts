import type { Strategy } from '@firebreak/core'

/** Why and how a key is handled. */
export interface Handling {
  readonly strategy: Strategy
  readonly ruleId: string
  /** Hub time at which it lapses. */
  readonly until: number
  /** True if this process alone found the key hot and no hub has confirmed it yet. */
  readonly isClaim: boolean
}
