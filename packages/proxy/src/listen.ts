import { createServer, type ListenOptions, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, TLSSocket, type Server as TlsServer } from 'node:tls'
import { certificateNames, RenewableTls, watchFiles } from '@firebreak/core/node'
import { ProxyStartError } from './errors.ts'
import { type ResolvedProxyOptions, readTlsFiles } from './options.ts'
import type { ProxyCore } from './proxy-core.ts'
import { removeStaleSocket } from './stale-socket.ts'
import { NetTransport } from './transport/net-transport.ts'
import { listenRaw } from './transport/raw-transport.ts'
import { keepAliveMs } from './transport/transport.ts'

/** What a proxy listens on. */
export interface Listener {
  readonly port: number
  /** Stops accepting clients; connected ones stay. */
  close(): Promise<void>
}

/** Listens for clients of a core. With `isPortShared` other threads listen on the same port. */
export async function listen(core: ProxyCore, options: ResolvedProxyOptions, isPortShared: boolean): Promise<Listener> {
  const { host, port, path, tls, transport } = options
  if (transport === 'raw' && /^[\d.]+$|:/.test(host)) {
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
    // A client that has stopped sending still gets its answers.
    socket.allowHalfOpen = true
    core.accept((client) => new NetTransport(socket, client), namesShown(socket))
  }
  const server: Server =
    tls === undefined
      ? createServer({ noDelay: true }, onSocket)
      : createTlsServer({ ...tls, handshakeTimeout: options.authTimeoutMs }, onSocket)
  // The core counts clients; those that have yet to finish a handshake are not clients.
  if (tls !== undefined) server.maxConnections = options.maxClients
  // A client that does not use TLS, or disconnects: its own problem. Node only reports one that is too slow.
  server.on('tlsClientError', (_error: Error, socket: Socket) => socket.destroy())
  const place = path === undefined ? { host, port, reusePort: isPortShared } : { path }
  try {
    await listenAt(server, place).catch(async (error: NodeJS.ErrnoException) => {
      if (path === undefined || error.code !== 'EADDRINUSE' || !(await removeStaleSocket(path))) throw error
      await listenAt(server, place)
    })
  } catch (error) {
    throw cannotListen(error as Error)
  }
  // A connection that could not be accepted is the client's problem.
  server.on('error', () => {})
  const address = server.address()
  core.port = typeof address === 'object' && address !== null ? address.port : 0
  const certificates = followCertificates(server as TlsServer, core, options)
  return {
    port: core.port,
    close: () => {
      certificates?.close()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

/** The names in a client certificate signed by our authority; none if it presented none. */
function namesShown(socket: Socket): readonly string[] {
  return socket instanceof TLSSocket && socket.authorized ? certificateNames(socket.getPeerCertificate()) : []
}

/**
 * Renewed certificates are used for new clients at once, and clients whose authority is no longer trusted are ended; if they
 * are unusable, the previous ones stay in use.
 */
function followCertificates(server: TlsServer, { runtime }: ProxyCore, { tlsFiles, logger }: ResolvedProxyOptions) {
  if (tlsFiles === undefined) return undefined
  const files = Object.values(tlsFiles)
  const certificates = new RenewableTls(server)
  return watchFiles(files, runtime.timers, () => {
    try {
      certificates.renew(readTlsFiles(tlsFiles))
      logger.info({ files }, 'the certificate was reloaded')
    } catch (error) {
      const message = 'the new certificate cannot be used; the previous one stays in use'
      logger.warn({ files, error: (error as Error).message }, message)
    }
  })
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
