import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import type { OpenPipe } from '../connection/byte-pipe.ts'
import type { RedisTarget, RedisTlsOptions } from '../connection/redis-target.ts'
import { defaultRedisPort } from '../connection/redis-target.ts'

/** After so long without a byte the kernel asks whether the peer is still there. */
const keepAliveMs = 5000

/** A socket's place as Node takes it. */
export type SocketPlace =
  | { readonly path: string }
  | { readonly host: string; readonly port: number; readonly family?: number }

/** How a socket is opened. */
export interface SocketOptions {
  readonly place: SocketPlace
  /** TLS with these settings of Node's; a plain socket where there are none. */
  readonly tls?: ConnectionOptions | undefined
  /** False where the process may end although it is open, as an SDK's may. @default true */
  readonly keepsProcess?: boolean
}

/** A pipe to a server over Node's sockets. */
export function nodePipe(target: RedisTarget): OpenPipe {
  const { socketPath, host = '127.0.0.1', port = defaultRedisPort, tls } = target
  return socketPipe({
    place: socketPath === undefined ? { host, port } : { path: socketPath },
    tls: tls === undefined || tls === false ? undefined : nodeTls(tls === true ? {} : tls),
  })
}

/** A pipe over a socket that is opened as Node's own options say: TCP, TLS or a Unix socket. */
export function socketPipe(options: SocketOptions): OpenPipe {
  return (owner) => {
    const socket = openSocket(options)
    let isClosed = false
    let failure: Error | undefined
    socket.on(options.tls === undefined ? 'connect' : 'secureConnect', () => {
      if (!isClosed) owner.onOpen()
    })
    socket.on('data', (chunk) => {
      if (!isClosed) owner.onData(chunk)
    })
    socket.on('error', (error) => {
      failure = error
    })
    socket.on('close', () => {
      if (isClosed) return
      isClosed = true
      owner.onEnd(failure)
    })
    return {
      write(bytes) {
        if (isClosed) return
        // What is sent in one turn leaves in one write: the server answers it in one go.
        if (socket.writableCorked === 0) {
          socket.cork()
          process.nextTick(() => socket.uncork())
        }
        socket.write(bytes)
      },
      pause: () => void socket.pause(),
      resume: () => void socket.resume(),
      close() {
        isClosed = true
        socket.destroy()
      },
    }
  }
}

function openSocket({ place, tls, keepsProcess = true }: SocketOptions): Socket {
  const socket =
    tls === undefined
      ? connectTcp({ ...place, noDelay: true })
      : connectTls({
          ...('host' in place && isIP(place.host) === 0 ? { servername: place.host } : {}),
          ...tls,
          ...place,
        })
  socket.setNoDelay(true)
  socket.setKeepAlive(true, keepAliveMs)
  return keepsProcess ? socket : socket.unref()
}

function nodeTls({ ca, certificate, key, serverName, isVerified = true }: RedisTlsOptions): ConnectionOptions {
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(certificate === undefined ? {} : { cert: certificate }),
    ...(key === undefined ? {} : { key }),
    ...(serverName === undefined ? {} : { servername: serverName }),
    rejectUnauthorized: isVerified,
  }
}
