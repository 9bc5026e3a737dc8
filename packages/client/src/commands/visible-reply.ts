import { type IsOurs, visibleKey, visibleNames } from '@firebreak/shield'

/**
 * The reply to KEYS, SCAN or RANDOMKEY, with names as bytes, as if there were no copies; a promise if RANDOMKEY has to
 * be asked again.
 */
export function visibleReply(
  reply: unknown,
  isOurs: IsOurs,
  ask: (words: readonly string[]) => Promise<unknown>,
): unknown {
  if (!(reply instanceof Uint8Array)) return visibleNames(reply, isOurs)
  return isOurs(reply) ? visibleKey(reply, isOurs, ask) : reply
}
