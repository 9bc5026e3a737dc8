import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type MetricFamily, prometheusText } from '@firebreak/core'
import { ProxyStartError } from '../errors.ts'

/** Where the proxy's metrics are served. */
export interface MetricsServerOptions {
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
}

/** The HTTP side of a proxy, for those who watch it: `/metrics` for Prometheus, `/livez` for a supervisor. */
export interface MetricsServer {
  readonly port: number
  close(): Promise<void>
}

/** Serves what `collect` gives; resolves once it listens. */
export async function serveMetrics(
  { host, port }: MetricsServerOptions,
  collect: () => Promise<readonly MetricFamily[]>,
): Promise<MetricsServer> {
  const server = createServer((request, response) => void answer(request, response, collect))
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      reject(new ProxyStartError(`the proxy cannot serve its metrics: ${cause.message}`, { cause }))
    })
    server.listen(port, host, resolve)
  })
  // Nothing here may keep a process alive that has nothing else to do.
  server.unref()
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function answer(
  { method, url = '' }: IncomingMessage,
  response: ServerResponse,
  collect: () => Promise<readonly MetricFamily[]>,
): Promise<void> {
  const pathname = url.split('?')[0]
  const end = (status: number, body: string, headers: Record<string, string> = {}) =>
    response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...headers }).end(body)
  if (pathname !== '/metrics' && pathname !== '/livez') end(404, 'not found; there are /metrics and /livez\n')
  else if (method !== 'GET' && method !== 'HEAD') end(405, 'only GET\n', { allow: 'GET, HEAD' })
  else if (pathname === '/livez') end(200, 'ok\n')
  else {
    try {
      end(200, prometheusText(await collect()), { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
    } catch (error) {
      end(500, `${(error as Error).message}\n`)
    }
  }
}
