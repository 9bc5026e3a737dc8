import { type CommandArgument, ErrorReply, encodeCommand, ReplyDecoder, type RespValue } from '@firebreak/core'
import { UpstreamLostError } from '../errors.ts'
import type { ConnectTarget } from '../transport/transport.ts'
import type { ConnectionState } from './identity.ts'
import { UpstreamConnection, type UpstreamSettings } from './upstream-connection.ts'

/** Asks a server one thing over a connection of its own, for the proxy's own needs. */
export function askOnce(
  target: ConnectTarget,
  state: ConnectionState,
  settings: UpstreamSettings,
  command: readonly CommandArgument[],
): Promise<RespValue> {
  return new Promise((resolve, reject) => {
    const decoder = new ReplyDecoder({ bulk: 'text' })
    const fail = (error: Error) => {
      timer.cancel()
      connection.destroy()
      reject(error)
    }
    const connection = new UpstreamConnection(
      target,
      state,
      {
        onReply(bytes, start, end, isLast) {
          decoder.feed(Buffer.from(bytes.subarray(start, end)))
          if (!isLast) return
          timer.cancel()
          connection.destroy()
          const reply = decoder.next()
          if (reply instanceof ErrorReply)
            reject(new UpstreamLostError(connection.address, `it answered ${reply.text}`))
          else resolve(reply ?? null)
        },
        onLost: fail,
      },
      settings,
    )
    const timer = settings.runtime.timers.setTimeout(
      () => fail(new UpstreamLostError(connection.address, `no answer to ${command[0]}`)),
      settings.connectWaitMs + 1000,
    )
    const bytes = encodeCommand(command)
    connection.outlet.put(bytes, 0, bytes.length)
  })
}
