import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { ProxyStartError } from './errors.ts'
import { type ProxyOptions, resolveProxyOptions } from './options.ts'
import { ProxyCore } from './proxy-core.ts'
import { NetTransport } from './transport/net-transport.ts'

/** A proxy that listens. */
export interface Proxy {
  readonly port: number
  close(): Promise<void>
}

/** Starts a proxy; resolves once it listens. */
export async function startProxy(options: ProxyOptions): Promise<Proxy> {
  const resolved = resolveProxyOptions(options)
  const core = new ProxyCore(resolved)
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
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      core.close()
      await closed
    },
  }
}
