import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { IdService } from '@firebreak/ids'

const segmentPath = '/api/segment/get/'
const snowflakePath = '/api/snowflake/get/'
const keepAliveMs = 72_000

/**
 * A server that answers the one request that matters for speed, a single id that is in memory, before Fastify sees it:
 * routing, hooks and reply object cost as much again as `node:http` itself (`bench/ids`: http-vs-bare). Everything else,
 * and every error, is Fastify's.
 */
export function singleIdServer(service: IdService, otherwise: RequestListener): Server {
  // A request without a body gets a stream that has ended already: a fifth of the cost of a request for an id.
  const server = createServer({ optimizeEmptyRequests: true }, (request, response) => {
    if (!answerSingle(service, request, response)) otherwise(request, response)
  })
  server.keepAliveTimeout = keepAliveMs
  return server
}

function answerSingle(service: IdService, request: IncomingMessage, response: ServerResponse): boolean {
  const url = request.url!
  // A query asks for a batch, and a percent sign for decoding.
  if (request.method !== 'GET' || url.includes('?') || url.includes('%')) return false
  let id: string | undefined
  if (url.startsWith(segmentPath)) id = service.takeSegment(url.slice(segmentPath.length))
  else if (url.startsWith(snowflakePath)) id = service.takeSnowflake()
  if (id === undefined) return false
  // A list of headers is written as it is; setHeader would keep each in an object first.
  response.writeHead(200, ['content-type', 'text/plain; charset=utf-8', 'content-length', String(id.length)])
  response.end(id)
  return true
}
