import type { Redis } from '@firebreak/redis'
import { loadTimedScript } from '../time/now-script.ts'

const keepScript = /* @__PURE__ */ loadTimedScript(new URL('./keep-member.lua', import.meta.url))

/** Extends the lease of one of several holders (0: leaves it); false when it was over. */
export async function keepMember(redis: Redis, key: string, owner: string, leaseMs: number): Promise<boolean> {
  return (await redis.run(keepScript, [key], [owner, leaseMs])) === 1
}
