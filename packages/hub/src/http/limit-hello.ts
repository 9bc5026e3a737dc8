import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { closeCodes } from '../deliver/sensor-channel.ts'

/** Bytes of a connection up to and with its hello, which is some hundred bytes long. */
const maxHelloBytes = 64 * 1024

/**
 * Cuts a connection off that sends more than a hello takes before it is known. A WebSocket's frame may be as long as the
 * largest report, and is held until its end has come: nobody may make us hold one before they have shown their token.
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
    // Not a goodbye that waits for theirs, which would go on reading.
    stream.destroy()
  }
  stream.on('data', count)
}
