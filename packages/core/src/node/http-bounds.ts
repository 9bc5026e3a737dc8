import type { IncomingMessage, Server, ServerOptions } from 'node:http'

/** What a stranger may take of an HTTP server before anything is known about them. */
export interface HttpBounds {
  /** Connections at once; further ones are closed as they come. @default 20000 */
  readonly maxConnections?: number
  /** Time for the head of a request, counted from the connection's beginning or the last request's end. @default 10000 */
  readonly headersTimeoutMs?: number
  /** Time for a whole request with its body. @default 30000 */
  readonly requestTimeoutMs?: number
  /** A connection over which nothing goes for this long is closed. WebSockets are not meant. @default 75000 */
  readonly idleTimeoutMs?: number
}

/** What `createServer` must be told for the bounds to hold; `boundHttpServer` tells the rest. */
export function httpServerOptions({
  headersTimeoutMs = 10_000,
  requestTimeoutMs = 30_000,
  idleTimeoutMs = 75_000,
}: HttpBounds = {}): ServerOptions {
  return {
    headersTimeout: headersTimeoutMs,
    requestTimeout: Math.max(headersTimeoutMs, requestTimeoutMs),
    keepAliveTimeout: idleTimeoutMs,
    // Node looks for late requests this often.
    connectionsCheckingInterval: Math.min(headersTimeoutMs, 5000),
  }
}

/** Sets the bounds that Node takes only on a server that is there already. */
export function boundHttpServer(server: Server, { maxConnections = 20_000, idleTimeoutMs = 75_000 }: HttpBounds = {}) {
  server.maxConnections = maxConnections
  server.setTimeout(idleTimeoutMs)
}

/** A body up to this is read and dropped, so that the connection can be used again. */
const smallBodyBytes = 64 * 1024

/**
 * True where an answer goes out while a large body is still to come. Such an answer must say `Connection: close`: else
 * Node reads the body to its end to use the connection again, and a refused stranger makes us take all that they send.
 */
export function leavesLargeBody({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > smallBodyBytes
}
