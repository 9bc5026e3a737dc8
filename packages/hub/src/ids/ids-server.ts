import { timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import { InvalidOptionError } from '@firebreak/core'
import { boundHttpServer, type HttpBounds, httpServerOptions } from '@firebreak/core/node'
import {
  IdService,
  RespIdServer,
  type RespIdServerOptions,
  type SegmentIds,
  type SnowflakeNode,
  timePath,
} from '@firebreak/ids'
import fastify, { type FastifyInstance } from 'fastify'
import { checkServiceToken } from '../access/secrets.ts'
import { AccessGuard } from '../http/access-guard.ts'
import { closeUnreadBodies, refuseStrangers } from '../http/port-bounds.ts'
import { idsRoutes, sendError } from './ids-routes.ts'
import { singleIdServer } from './single-id-path.ts'

/** A stand-alone id service: HTTP and RESP. */
export interface IdsServerOptions {
  /** Where to listen; beyond loopback a token is required. @default '127.0.0.1' */
  readonly host?: string
  /** For HTTP. @default a free port */
  readonly port?: number
  /** For RESP; undefined for none. */
  readonly respPort?: number
  /** The token that clients must send: `Authorization: Bearer …` over HTTP, AUTH over RESP. @default none */
  readonly token?: string
  /** Bounds of the HTTP port. @default those of `HttpBounds` */
  readonly connections?: HttpBounds
  /** Bounds of the RESP port. */
  readonly respConnections?: Pick<RespIdServerOptions, 'maxConnections' | 'idleTimeoutMs' | 'authTimeoutMs'>
  readonly segments?: SegmentIds
  /**
   * Starts the snowflake node once HTTP is up and its port is known: peers query the time there. A rejection closes the
   * service.
   */
  readonly startSnowflake?: (port: number) => Promise<SnowflakeNode>
}

/** A running id service. */
export interface IdsServer {
  readonly service: IdService
  readonly host: string
  readonly port: number
  readonly respPort: number | undefined
  /** Stops listening, then stops the id generators. */
  close(): Promise<void>
}

/** Open to everyone: health checks carry no token, and peers need the time. */
const openPaths: ReadonlySet<string> = new Set(['/livez', '/readyz', timePath])

/** Starts HTTP and RESP, then joins the other nodes. */
export async function startIdsServer(options: IdsServerOptions): Promise<IdsServer> {
  const { host = '127.0.0.1', token, segments } = options
  if (!isLoopback(host) && token === undefined) {
    throw new InvalidOptionError('token', token, `given where the service listens on ${host}, which is not loopback`)
  }
  if (!isLoopback(host) && token !== undefined) checkServiceToken(token)
  const service = new IdService(segments === undefined ? {} : { segments })
  const guard = new AccessGuard({ tokens: undefined, allowedHosts: [] })
  const app = fastify({
    forceCloseConnections: true,
    // With a token every request must pass the hook that checks it.
    serverFactory: (handler) => {
      const bounds = httpServerOptions(options.connections)
      return token === undefined ? singleIdServer(service, guard, bounds, handler) : createServer(bounds, handler)
    },
  })
  boundHttpServer(app.server, options.connections)
  closeUnreadBodies(app)
  app.setErrorHandler((error, _request, reply) => sendError(reply, error))
  refuseStrangers(app, guard, token !== undefined)
  if (token !== undefined) requireToken(app, token)
  app.get('/livez', async () => ({ status: 'up' }))
  app.get('/readyz', async ({ headers }, reply) => {
    const isKnown = token === undefined || isBearer(headers.authorization, token)
    const all = troublesOf(service, options)
    // Tags and database errors are not for everyone who may check whether the service is up.
    const troubles = isKnown ? all : all.map((text) => text.split(/[ :]/, 1)[0]!)
    return reply.code(troubles.length === 0 ? 200 : 503).send({ isReady: troubles.length === 0, troubles })
  })
  await app.register(idsRoutes, { service })
  let resp: RespIdServer | undefined
  const close = async () => {
    await Promise.all([app.close(), resp?.close()])
    await service.snowflake?.close()
    await segments?.close()
  }
  try {
    await app.listen({ host, port: options.port ?? 0 })
    const { port } = app.server.address() as { port: number }
    if (options.startSnowflake !== undefined) service.snowflake = await options.startSnowflake(port)
    if (options.respPort !== undefined) {
      resp = await RespIdServer.start({
        service,
        host,
        port: options.respPort,
        ...(token === undefined ? {} : { token }),
        ...options.respConnections,
      })
    }
    return { service, host, port, respPort: resp?.port, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Why the service cannot give all of its kinds of ids now. */
function troublesOf({ snowflake, segments }: IdService, options: IdsServerOptions): string[] {
  const status = snowflake?.status()
  const troubles: string[] = []
  if (options.startSnowflake !== undefined && status === undefined) troubles.push('snowflake: not joined yet')
  if (status?.error !== undefined) troubles.push(`snowflake: ${status.error.message}`)
  // A database that is down is not a problem while its buffers last.
  for (const { tag, left, ready, error } of segments?.buffers() ?? []) {
    if (error !== undefined && left + ready === 0) troubles.push(`segment ${tag}: ${error}`)
  }
  return troubles
}

function requireToken(app: FastifyInstance, token: string): void {
  app.addHook('onRequest', async (request, reply) => {
    if (openPaths.has(request.url.split('?', 1)[0]!)) return
    if (isBearer(request.headers.authorization, token)) return
    const isMissing = request.headers.authorization === undefined
    const message = isMissing
      ? 'this needs the service’s token: send Authorization: Bearer TOKEN'
      : 'the Authorization header is not "Bearer" and the service’s token: send that one'
    await reply.code(401).send({ code: isMissing ? 'FB_TOKEN_MISSING' : 'FB_TOKEN_REFUSED', message })
  })
}

function isBearer(authorization: string | undefined, token: string): boolean {
  const [given, wanted] = [Buffer.from(authorization ?? ''), Buffer.from(`Bearer ${token}`)]
  return given.length === wanted.length && timingSafeEqual(given, wanted)
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host)
}
