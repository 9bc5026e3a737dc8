import type { IsOurs, Trouble } from '@firebreak/shield'
import { visibleReply } from '../commands/visible-reply.ts'
import type { IoredisCommand, IoredisCommandClass } from './ioredis-client.ts'

/** Removes our names from a command's reply before the command decodes it; `send` is for follow-up commands. */
export function rewriteReply(
  command: IoredisCommand,
  isOurs: IsOurs,
  trouble: Trouble,
  send: (command: IoredisCommand) => void,
): void {
  const { resolve } = command
  const Command = command.constructor as IoredisCommandClass
  const ask = ([name, ...args]: readonly string[]) => {
    const another = new Command(name!.toLowerCase(), args, { replyEncoding: null })
    send(another)
    return another.promise
  }
  command.resolve = (value) => {
    const give = (visible: unknown) => resolve.call(command, visible)
    // If that fails, the reply stays unchanged.
    const failed = (error: unknown) => {
      trouble.failed(error)
      return give(value)
    }
    try {
      const visible = visibleReply(value, isOurs, ask)
      return visible instanceof Promise ? visible.then(give, failed) : give(visible)
    } catch (error) {
      return failed(error)
    }
  }
}
