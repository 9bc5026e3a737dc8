import { connect as connectTcp, isIP, type NetConnectOpts } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { type ClientOptions, WebSocket } from 'ws'
import type { HubTransport } from './hub-channel.ts'

const maxFrameBytes = 64 << 20

/** Hubs over WebSockets, with HTTP as an alternative. */
export const webSocketHubs: HubTransport = {
  hasHttp: true,
  open({ sensorUrl, isPrivate }, token, owner) {
    const socket = new WebSocket(sensorUrl, {
      handshakeTimeout: 2000,
      maxPayload: maxFrameBytes,
      perMessageDeflate: false,
      ...(isPrivate && { generateMask: noMask }),
      ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
      createConnection: sensorUrl.startsWith('wss:') ? connectTlsUnreferenced : connectUnreferenced,
    } as ClientOptions)
    let failure: unknown
    socket.on('open', () => owner.onOpen())
    socket.on('message', (data, isBinary) => owner.onMessage(data as Buffer, isBinary))
    socket.on('error', (error) => {
      failure = error
    })
    socket.on('close', () => owner.onClose(failure))
    return {
      send: (frame) => socket.send(frame, { binary: true }, ignoreError),
      get bufferedBytes() {
        return socket.bufferedAmount
      },
      close: () => socket.close(),
      terminate: () => socket.terminate(),
    }
  },
}

// A mask keeps intermediaries from mistaking the data for HTTP. If none can see it, masking is most of the cost of
// sending a report.
function noMask(mask: Buffer): void {
  mask.fill(0)
}

// `path` is the URL's, which `connect` would take for a socket in the file system.
function connectUnreferenced(options: NetConnectOpts) {
  return connectTcp({ ...options, path: undefined, noDelay: true } as NetConnectOpts).unref()
}

function connectTlsUnreferenced(options: ConnectionOptions) {
  const servername = options.servername ?? (isIP(options.host ?? '') ? '' : options.host)
  return connectTls({ ...options, path: undefined, servername } as ConnectionOptions).unref()
}

function ignoreError(): void {
  // The socket's `close` event reports it.
}
