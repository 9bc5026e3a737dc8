import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import type { OpenPipe } from '../connection/byte-pipe.ts'
import type { RedisTarget, RedisTlsOptions } from '../connection/redis-target.ts'
import { defaultRedisPort } from '../connection/redis-target.ts'
import { systemTimers } from '../time/clock.ts'

/** Idle time after which the kernel checks whether the peer is still there. */
const keepAliveMs = 5000

/** How long we wait for a peer to close its side. */
const closeMs = 1000

/** A socket's address as Node takes it. */
export type SocketPlace =
  | { readonly path: string }
  | { readonly host: string; readonly port: number; readonly family?: number }

/** How a socket is opened. */
export interface SocketOptions {
  readonly place: SocketPlace
  /** Node's TLS settings; a plain socket if undefined. */
  readonly tls?: ConnectionOptions | undefined
  /** False if the process may exit although the socket is open, as for an SDK. @default true */
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

/** A pipe over a socket opened with Node's own options: TCP, TLS or a Unix socket. */
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
        // Everything sent in one turn leaves in one write, and the server answers it together.
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
        if (socket.connecting) socket.destroy()
        else endGently(socket)
      },
    }
  }
}

/**
 * Ends a socket the way client libraries do. Destroying it resets the connection of a server that is still writing, and
 * a server in the application's own process, as in test suites, may not survive that.
 */
function endGently(socket: Socket): void {
  socket.unref()
  const patience = systemTimers.setTimeout(() => socket.destroy(), closeMs)
  socket.on('close', () => patience.cancel())
  socket.end()
  // Discards whatever still arrives.
  socket.resume()
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
