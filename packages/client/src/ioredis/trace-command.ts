import { tracingChannel } from 'node:diagnostics_channel'
import type { IoredisClient, IoredisCommand } from './ioredis-client.ts'

const commandChannel = tracingChannel('ioredis:command')

/** True while someone traces ioredis commands. */
export function isTraced(): boolean {
  return commandChannel.hasSubscribers
}

/** Publishes a command that is answered here, as ioredis publishes those that it sends. */
export function traceCommand(client: IoredisClient, command: IoredisCommand): void {
  const context = client._buildCommandContext?.(command)
  if (context !== undefined) commandChannel.tracePromise(() => command.promise, context).catch(() => {})
}
