import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http'
import type { IdService } from '@firebreak/ids'
import type { AccessGuard } from '../http/access-guard.ts'

const segmentPath = '/api/segment/get/'
const snowflakePath = '/api/snowflake/get/'

/**
 * A server that answers the one request that must be fast, a single id from memory, before Fastify sees it: routing,
 * hooks and reply object cost as much again as `node:http` itself (`bench/ids`: http-vs-bare). Everything else, and
 * every error, is Fastify's.
 */
export function singleIdServer(
  service: IdService,
  guard: AccessGuard,
  bounds: ServerOptions,
  otherwise: RequestListener,
): Server {
  // A request without a body gets a stream that has already ended, which saves a fifth of the cost of a request for an
  // id.
  return createServer({ ...bounds, optimizeEmptyRequests: true }, (request, response) => {
    if (!answerSingle(service, guard, request, response)) otherwise(request, response)
  })
}

function answerSingle(
  service: IdService,
  guard: AccessGuard,
  request: IncomingMessage,
  response: ServerResponse,
): boolean {
  const url = request.url!
  // A query requests a batch, and a percent sign requires decoding.
  if (request.method !== 'GET' || url.includes('?') || url.includes('%')) return false
  if (!isProgram(request.rawHeaders, guard)) return false
  let id: string | undefined
  if (url.startsWith(segmentPath)) id = service.takeSegment(url.slice(segmentPath.length))
  else if (url.startsWith(snowflakePath)) id = service.takeSnowflake()
  if (id === undefined) return false
  // A list of headers is written unchanged; setHeader would first store each in an object.
  response.writeHead(200, ['content-type', 'text/plain; charset=utf-8', 'content-length', String(id.length)])
  response.end(id)
  return true
}

/**
 * True if the host is this machine and no header suggests a browser; Fastify's hook checks everything else. Uses the
 * raw headers: Node would first have to build an object of them.
 */
function isProgram(rawHeaders: readonly string[], guard: AccessGuard): boolean {
  let hasHost = false
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    if (name.length === 4 && name.toLowerCase() === 'host') {
      if (!guard.isOwnHost(rawHeaders[at + 1])) return false
      hasHost = true
    } else if (name.length === 6 && name.toLowerCase() === 'origin') return false
    else if (name.length === 14 && name.toLowerCase() === 'sec-fetch-site') return false
  }
  return hasHost
}
