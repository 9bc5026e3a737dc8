import type { Strategy } from '@firebreak/core'

/** Why a key is handled, and how. */
export interface Handling {
  readonly strategy: Strategy
  readonly ruleId: string
  /** Hub time at which it lapses. */
  readonly until: number
  /** True where this process alone found the key hot and no hub has confirmed it yet. */
  readonly isClaim: boolean
}
