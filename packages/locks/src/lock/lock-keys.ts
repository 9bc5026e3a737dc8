import { InvalidOptionError } from '@firebreak/core'
import { keySlot } from '@firebreak/core/commands'
import type { RedisTopology } from '@firebreak/redis'

/** The keys and channels of one lock; all fall into the slot of its name. */
export interface LockKeys {
  /** The hash of holders, as in Java's Redisson: the lock's own name. */
  readonly lock: string
  /** Where a release is announced, as in Java's Redisson. */
  readonly channel: string
  /** Counts the fencing tokens of an epoch. */
  readonly token: string
  /** The end of the last epoch of tokens. */
  readonly epoch: string
}

/** `prefix:{name}`, or `prefix:name` if the name contains a hash tag, as in Java's Redisson. */
export function besideName(prefix: string, name: string): string {
  return name.includes('{') ? `${prefix}:${name}` : `${prefix}:{${name}}`
}

/**
 * Refuses a name whose related keys would be in other slots of a cluster (`a}b`, `a{}b`), an empty one, and anything
 * that is not a string.
 */
export function requireName(name: string, topology: RedisTopology): void {
  if (typeof name !== 'string' || name === '') throw new InvalidOptionError('name', name, 'a non-empty string')
  if (topology === 'cluster' && keySlot(besideName('x', name)) !== keySlot(name)) {
    throw new InvalidOptionError('name', name, 'without unpaired braces, or its keys fall into different slots')
  }
}

/** The keys of a lock by its name. */
export function lockKeys(name: string): LockKeys {
  return {
    lock: name,
    channel: besideName('redisson_lock__channel', name),
    token: besideName('firebreak_lock_token', name),
    epoch: besideName('firebreak_lock_epoch', name),
  }
}
