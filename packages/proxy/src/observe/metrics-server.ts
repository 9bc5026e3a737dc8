import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type MetricFamily, prometheusText } from '@firebreak/core/metrics'
import { boundHttpServer, httpServerOptions, leavesLargeBody } from '@firebreak/core/node'
import { ProxyStartError } from '../errors.ts'
import { MetricsAccess } from './metrics-access.ts'
import { upstreamUpName } from './proxy-families.ts'

/** Where the proxy's metrics are served. */
export interface MetricsServerOptions {
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
  /** The bearer token that a reader must send; `/livez` and the status of `/readyz` stay open. @default none */
  readonly token?: string | undefined
}

/**
 * The HTTP side of a proxy, for monitoring: `/metrics` for Prometheus, `/livez` (the process answers) and `/readyz` (a
 * Redis behind it answers too) for a supervisor.
 */
export interface MetricsServer {
  readonly port: number
  close(): Promise<void>
}

/** Few clients monitor a proxy. */
const bounds = { maxConnections: 256, requestTimeoutMs: 10_000 }

/** Serves what `collect` returns; resolves once it is listening. */
export async function serveMetrics(
  { host, port, token }: MetricsServerOptions,
  collect: () => Promise<readonly MetricFamily[]>,
): Promise<MetricsServer> {
  const access = new MetricsAccess(token)
  const server = createServer(
    httpServerOptions(bounds),
    (request, response) => void answer(request, response, collect, access),
  )
  boundHttpServer(server, bounds)
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      reject(new ProxyStartError(`the proxy cannot serve its metrics: ${cause.message}`, { cause }))
    })
    server.listen(port, host, resolve)
  })
  // This must not keep an otherwise idle process alive.
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
  request: IncomingMessage,
  response: ServerResponse,
  collect: () => Promise<readonly MetricFamily[]>,
  access: MetricsAccess,
): Promise<void> {
  const { method, url = '' } = request
  const pathname = url.split('?')[0]
  // No request here needs a body.
  if (leavesLargeBody(request)) response.setHeader('connection', 'close')
  const end = (status: number, body: string, headers: Record<string, string> = {}) =>
    response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...headers }).end(body)
  const isKnown = pathname === '/metrics' || pathname === '/livez' || pathname === '/readyz'
  if (!isKnown) end(404, 'not found; try /metrics, /livez or /readyz\n')
  else if (method !== 'GET' && method !== 'HEAD') end(405, 'only GET\n', { allow: 'GET, HEAD' })
  else if (pathname === '/livez') end(200, 'ok\n')
  else {
    const refusal = access.refusalOf(request)
    if (refusal?.status === 403 || (refusal !== undefined && pathname === '/metrics')) {
      return void end(refusal.status, `${refusal.reason}\n`)
    }
    try {
      const families = await collect()
      if (pathname === '/readyz') end(...readiness(families, refusal === undefined))
      else end(200, prometheusText(families), { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
    } catch (error) {
      end(500, `${(error as Error).message}\n`)
    }
  }
}

/** Ready while any Redis answers: if one master of a cluster is down, the others' keys are still served. */
function readiness(families: readonly MetricFamily[], mayName: boolean): [status: number, body: string] {
  const points = families.find(({ name }) => name === upstreamUpName)?.points ?? []
  const up = new Set<string>()
  const away = new Set<string>()
  for (const point of points) if ('value' in point) (point.value > 0 ? up : away).add(point.labels['node']!)
  const told = away.size === 0 || !mayName ? '' : `; away: ${[...away].join(', ')}`
  return up.size > 0 ? [200, `ok${told}\n`] : [503, `no Redis answers${told}\n`]
}
