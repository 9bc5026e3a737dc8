import type { Redis } from './redis.ts'

const sharded = new WeakMap<Redis, Promise<boolean>>()
/** The answers that have come. */
const answered = new WeakMap<Redis, PublishCommand>()

export type PublishCommand = 'PUBLISH' | 'SPUBLISH'

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
  const areSharded = answers.every((answer) => !Array.isArray(answer) || answer[0] !== null)
  if (answers.length > 0) answered.set(redis, commandOf(areSharded))
  return areSharded
}

function commandOf(areSharded: boolean): PublishCommand {
  return areSharded ? 'SPUBLISH' : 'PUBLISH'
}

/** The command that reaches the channels of this Redis' subscribers: sharded on a cluster, where it can be. */
export async function publishCommand(redis: Redis): Promise<PublishCommand> {
  return commandOf(await hasShardedChannels(redis))
}

/**
 * Sends something that needs the command: in this very turn where it is known, so that what is sent first arrives first. A
 * release that came behind its owner's next acquisition would give away what the owner holds.
 */
export function withPublishCommand<Result>(
  redis: Redis,
  send: (command: PublishCommand) => Promise<Result>,
): Promise<Result> {
  const known = redis.topology === 'cluster' ? answered.get(redis) : 'PUBLISH'
  return known === undefined ? publishCommand(redis).then(send) : send(known)
}
