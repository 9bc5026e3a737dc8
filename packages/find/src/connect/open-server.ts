import { openRespClient } from '@firebreak/core/node'
import type { RedisTarget, RespClient } from '@firebreak/core/resp'

/** Connects to a server for a finder. Uses RESP2, which looks the same on every server. */
export function openServer(target: RedisTarget): Promise<RespClient> {
  return openRespClient(target, { name: 'firebreak-find' })
}
