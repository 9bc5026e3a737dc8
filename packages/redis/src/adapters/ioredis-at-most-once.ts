import type { IoredisLike } from './ioredis.ts'

/** A command as ioredis hands it to `sendCommand`; a pipeline numbers those that it sends. */
interface IoredisCommand {
  pipelineIndex?: number
}

interface Sender {
  sendCommand(command: IoredisCommand, ...rest: unknown[]): unknown
}

/**
 * The same client, whose commands are not sent again after a lost connection.
 *
 * ioredis keeps what it has no reply for and repeats it when it is connected again (a cluster client too, on another
 * node if need be), and has no way to say otherwise for one command. It makes one exception: what is left of a pipeline
 * that was answered in part is rejected, which it knows by the commands' numbers. A command with a number that no
 * pipeline gives is rejected likewise.
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
