import type { Duplex } from 'node:stream'
import { type RawData, WebSocket } from 'ws'
import { closeCodes, type SensorChannel } from '../deliver/sensor-channel.ts'
import { wireMessage } from './wire-message.ts'

/** Messages for many sensors, in wire form. */
const sharedMessages = new WeakMap<Uint8Array, Buffer>()

/**
 * A sensor's WebSocket, and the stream below it, as a channel of frames; `onTooLarge` is called if a message is refused
 * unread.
 */
export function socketChannel(socket: WebSocket, stream: Duplex, onTooLarge: () => void): SensorChannel {
  // The reason is the other side's or the network's: `close` follows.
  socket.on('error', (error: Error & { code?: string }) => {
    if (error.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') onTooLarge()
  })
  return {
    send(frame, isShared = false) {
      if (!isShared) socket.send(frame)
      // Bypasses `ws`, which writes every message whole and at once, so ours never ends up inside another.
      else if (socket.readyState === WebSocket.OPEN) stream.write(messageOf(frame))
    },
    get bufferedBytes() {
      return socket.bufferedAmount
    },
    onFrame(listener) {
      socket.on('message', (data: RawData, isBinary: boolean) => {
        if (isBinary) listener(data as Buffer)
        else socket.close(closeCodes.protocol, 'sensors speak binary frames')
      })
    },
    onClose: (listener) => void socket.on('close', listener),
    close: (code, reason) => socket.close(code, reason),
  }
}

function messageOf(frame: Uint8Array): Buffer {
  let message = sharedMessages.get(frame)
  if (message === undefined) {
    message = wireMessage(frame)
    sharedMessages.set(frame, message)
  }
  return message
}
