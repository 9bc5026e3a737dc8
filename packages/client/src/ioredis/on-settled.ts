import type { IoredisCommand } from './ioredis-client.ts'

/** Calls back with a command's reply or error, before the application learns of it; `callback` must not throw. */
export function onSettled(command: IoredisCommand, callback: (reply: unknown) => void): void {
  const { resolve, reject } = command
  let isDone = false
  const once = (reply: unknown) => {
    if (!isDone) callback(reply)
    isDone = true
  }
  command.resolve = (value) => {
    once(value)
    return resolve.call(command, value)
  }
  command.reject = (error) => {
    once(error)
    return reject.call(command, error)
  }
}
