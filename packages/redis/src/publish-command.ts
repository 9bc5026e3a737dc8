import type { Redis } from './redis.ts'

const sharded = new WeakMap<Redis, Promise<boolean>>()

/**
 * Whether channels are sharded: on a cluster whose masters all have sharded pub/sub, which Redis has since 7.0. Asked once;
 * where nobody can be asked, the newer servers are assumed.
 */
export function hasShardedChannels(redis: Redis): Promise<boolean> {
  if (redis.topology !== 'cluster') return Promise.resolve(false)
  let known = sharded.get(redis)
  if (known === undefined) {
    known = ask(redis)
    sharded.set(redis, known)
  }
  return known
}

async function ask(redis: Redis): Promise<boolean> {
  const asked = redis.masters().then((masters) => {
    return Promise.all(masters.map((master) => master.send(['COMMAND', 'INFO', 'SPUBLISH'])))
  })
  const answers = await asked.catch(() => [])
  // Not allowed, or not connected yet: the next call asks again.
  if (answers.length === 0) sharded.delete(redis)
  return answers.every((answer) => !Array.isArray(answer) || answer[0] !== null)
}

/** The command that reaches the channels of this Redis' subscribers: sharded on a cluster, where it can be. */
export async function publishCommand(redis: Redis): Promise<'PUBLISH' | 'SPUBLISH'> {
  return (await hasShardedChannels(redis)) ? 'SPUBLISH' : 'PUBLISH'
}
