import type { Redis } from '@firebreak/redis'
import { loadTimedScript } from '../time/now-script.ts'

const keepScript = /* @__PURE__ */ loadTimedScript(new URL('./keep-member.lua', import.meta.url))

/** Extends the lease of one of several holders (0: gives it up); false if it had ended. */
export async function keepMember(redis: Redis, key: string, owner: string, leaseMs: number): Promise<boolean> {
  return (await redis.run(keepScript, [key], [owner, leaseMs])) === 1
}
