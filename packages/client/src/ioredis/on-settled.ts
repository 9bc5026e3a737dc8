import type { IoredisCommand } from './ioredis-client.ts'

/** Calls back when the command is answered or given up, before the application learns of it. */
export function onSettled(command: IoredisCommand, callback: () => void): void {
  const { resolve, reject } = command
  let isDone = false
  const once = () => {
    if (!isDone) callback()
    isDone = true
  }
  command.resolve = (value) => {
    once()
    return resolve.call(command, value)
  }
  command.reject = (error) => {
    once()
    return reject.call(command, error)
  }
}
