import type { IncomingMessage, Server, ServerOptions } from 'node:http'

/** What an unauthenticated client may use of an HTTP server. */
export interface HttpBounds {
  /** Maximum number of connections; further ones are closed on arrival. @default 20000 */
  readonly maxConnections?: number
  /**
   * Time limit for the head of a request, from the start of the connection or the end of the last request. @default
   * 10000
   */
  readonly headersTimeoutMs?: number
  /** Time limit for a whole request including its body. @default 30000 */
  readonly requestTimeoutMs?: number
  /** Closes a connection that has been idle for this long. Does not apply to WebSockets. @default 75000 */
  readonly idleTimeoutMs?: number
}

export const httpBoundDefaults: Required<HttpBounds> = {
  maxConnections: 20_000,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  idleTimeoutMs: 75_000,
}

/** Options that `createServer` needs for the bounds to hold; `boundHttpServer` sets the rest. */
export function httpServerOptions(bounds?: HttpBounds): ServerOptions {
  const { headersTimeoutMs, requestTimeoutMs, idleTimeoutMs } = { ...httpBoundDefaults, ...bounds }
  return {
    headersTimeout: headersTimeoutMs,
    requestTimeout: Math.max(headersTimeoutMs, requestTimeoutMs),
    keepAliveTimeout: idleTimeoutMs,
    // How often Node checks for late requests.
    connectionsCheckingInterval: Math.min(headersTimeoutMs, 5000),
  }
}

/** Sets the bounds that Node only accepts on an existing server. */
export function boundHttpServer(server: Server, bounds?: HttpBounds): void {
  const { maxConnections, idleTimeoutMs } = { ...httpBoundDefaults, ...bounds }
  server.maxConnections = maxConnections
  server.setTimeout(idleTimeoutMs)
}

/** A body up to this size is read and dropped, so that the connection can be reused. */
const smallBodyBytes = 64 * 1024

/**
 * True if a response goes out while a large body is still to come. Such a response must say `Connection: close`:
 * otherwise Node reads the body to its end to reuse the connection, and a refused client makes us receive everything
 * that it sends.
 */
export function leavesLargeBody({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > smallBodyBytes
}
