import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { ProxyStartError } from './errors.ts'
import { type ProxyOptions, resolveProxyOptions } from './options.ts'
import { ProxyCore } from './proxy-core.ts'
import { NetTransport, netTransports } from './transport/net-transport.ts'
import { findMode } from './upstream/find-mode.ts'

/** A proxy that listens. */
export interface FirebreakProxy {
  readonly port: number
  close(): Promise<void>
}

/** Starts a proxy; resolves once it listens. */
export async function startProxy(options: ProxyOptions): Promise<FirebreakProxy> {
  const resolved = resolveProxyOptions(options)
  const { targets, identity, connectWaitMs } = resolved
  const state = { identity, version: 2, database: 0 } as const
  const mode =
    resolved.mode === 'auto'
      ? await findMode(targets, state, { transports: netTransports, connectWaitMs })
      : resolved.mode
  const core = new ProxyCore(resolved, mode)
  await core.ready()
  const onSocket = (socket: Socket) => {
    socket.setNoDelay(true)
    core.accept((client) => new NetTransport(socket, client))
  }
  const server: Server =
    resolved.tls === undefined ? createServer({ noDelay: true }, onSocket) : createTlsServer(resolved.tls, onSocket)
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(new ProxyStartError(`the proxy cannot listen: ${error.message}`, { cause: error })),
    )
    const place = resolved.path === undefined ? { host: resolved.host, port: resolved.port } : { path: resolved.path }
    server.listen({ ...place, backlog: 1024 }, resolve)
  })
  const address = server.address()
  core.port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    port: core.port,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      core.close()
      await closed
    },
  }
}
