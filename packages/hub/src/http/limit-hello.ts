import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { closeCodes } from '../deliver/sensor-channel.ts'

/** Maximum bytes of a connection up to and including its hello, which is a few hundred bytes long. */
const maxHelloBytes = 64 * 1024

/**
 * Cuts off a connection that sends more than a hello before it is authenticated. A WebSocket frame may be as large as
 * the largest report and is buffered until complete: nobody may make us buffer one before showing a token.
 */
export function limitHello(stream: Duplex, connection: WebSocket, isKnown: () => boolean): void {
  let bytes = 0
  const count = (chunk: Buffer) => {
    if (isKnown()) {
      stream.off('data', count)
      return
    }
    bytes += chunk.length
    if (bytes <= maxHelloBytes) return
    stream.off('data', count)
    connection.close(closeCodes.refused, 'hello must come first')
    // Not a close handshake, which would keep reading until theirs.
    stream.destroy()
  }
  stream.on('data', count)
}
