import type { IoredisLike } from './ioredis.ts'

/** A command as ioredis passes it to `sendCommand`; a pipeline numbers the commands that it sends. */
interface IoredisCommand {
  pipelineIndex?: number
}

interface Sender {
  sendCommand(command: IoredisCommand, ...rest: unknown[]): unknown
}

/**
 * The same client, except that its commands are not resent after a lost connection.
 *
 * ioredis keeps commands that have no reply and resends them after it reconnects (a cluster client too, to another node
 * if need be), with no way to opt out for one command. There is one exception: the rest of a partly answered pipeline
 * is rejected, and ioredis recognises it by the commands' numbers. A command with a number that no pipeline assigns is
 * rejected in the same way.
 */
export function sentAtMostOnce(client: IoredisLike): IoredisLike {
  const sender = client as unknown as Sender
  const sendCommand: Sender['sendCommand'] = (command, ...rest) => {
    command.pipelineIndex = -1
    return sender.sendCommand(command, ...rest)
  }
  // `isPipeline` keeps it out of automatic pipelines, which would renumber it.
  return Object.create(client, { sendCommand: { value: sendCommand }, isPipeline: { value: true } }) as IoredisLike
}
