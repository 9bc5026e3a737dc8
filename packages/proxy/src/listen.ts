import { createServer, type ListenOptions, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { ProxyStartError } from './errors.ts'
import type { ResolvedProxyOptions } from './options.ts'
import type { ProxyCore } from './proxy-core.ts'
import { removeStaleSocket } from './stale-socket.ts'
import { NetTransport } from './transport/net-transport.ts'
import { listenRaw, rawTransports } from './transport/raw-transport.ts'
import { keepAliveMs } from './transport/transport.ts'

/** What a proxy listens on. */
export interface Listener {
  readonly port: number
  /** Takes no more clients; those that are connected stay. */
  close(): Promise<void>
}

/** True where the options ask for raw handles and this Node has them. */
export function usesRawHandles({ transport, tls, path }: ResolvedProxyOptions): boolean {
  return transport === 'raw' && rawTransports !== undefined && tls === undefined && path === undefined
}

/** Listens for clients of a core. With `isPortShared` other threads listen on the same port. */
export async function listen(core: ProxyCore, options: ResolvedProxyOptions, isPortShared: boolean): Promise<Listener> {
  const { host, port, path, tls } = options
  if (usesRawHandles(options) && /^[\d.]+$|:/.test(host)) {
    try {
      const server = listenRaw(host, port, isPortShared, (attach) => core.accept(attach))
      core.port = server.port
      return { port: server.port, close: async () => server.close() }
    } catch (error) {
      throw cannotListen(error as Error)
    }
  }
  const onSocket = (socket: Socket) => {
    socket.setNoDelay(true)
    socket.setKeepAlive(true, keepAliveMs)
    // Who sends no more is still answered.
    socket.allowHalfOpen = true
    core.accept((client) => new NetTransport(socket, client))
  }
  const server: Server = tls === undefined ? createServer({ noDelay: true }, onSocket) : createTlsServer(tls, onSocket)
  // A client that speaks no TLS, or breaks off: its own matter.
  server.on('tlsClientError', () => {})
  const place = path === undefined ? { host, port, reusePort: isPortShared } : { path }
  try {
    await listenAt(server, place).catch(async (error: NodeJS.ErrnoException) => {
      if (path === undefined || error.code !== 'EADDRINUSE' || !(await removeStaleSocket(path))) throw error
      await listenAt(server, place)
    })
  } catch (error) {
    throw cannotListen(error as Error)
  }
  // A connection that could not be taken is the client's matter.
  server.on('error', () => {})
  const address = server.address()
  core.port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    port: core.port,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

function listenAt(server: Server, place: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ ...place, backlog: 1024 }, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function cannotListen(cause: Error): ProxyStartError {
  return new ProxyStartError(`the proxy cannot listen: ${cause.message}`, { cause })
}
