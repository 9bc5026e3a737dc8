import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Server } from 'node:tls'
import type { Runtime } from '@firebreak/core'
import { type MetricFamily, type OtlpExporter, prometheusText } from '@firebreak/core/metrics'
import {
  boundHttpServer,
  type HttpBounds,
  httpServerOptions,
  RenewableTls,
  type ServerCertificates,
} from '@firebreak/core/node'
import Fastify, { type FastifyBaseLogger, type FastifyInstance, type FastifyRequest, LogController } from 'fastify'
import { type WebSocket, WebSocketServer } from 'ws'
import type { AppGrant } from '../access/credential.ts'
import type { CredentialBook } from '../access/credential-book.ts'
import type { PeopleSessions } from '../access/people-sessions.ts'
import { signInRoutes } from '../access/sign-in.ts'
import { tokenRoutes } from '../access/token-routes.ts'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import type { PassingAlarms } from '../alarms/passing-alarms.ts'
import type { SensorChannel } from '../deliver/sensor-channel.ts'
import type { SensorSessions } from '../deliver/sensor-sessions.ts'
import { ApiProblem } from '../errors.ts'
import { barredRoutes } from '../fleet/barred-sensors.ts'
import type { Teller } from '../fleet/teller-bounds.ts'
import type { HubCore } from '../hub-core.ts'
import type { UnfinishedFrameBounds } from '../hub-options.ts'
import type { HubStore } from '../store/hub-store.ts'
import type { HubViews } from '../views/hub-views.ts'
import { AccessGuard, type UserHeader } from './access-guard.ts'
import { answerError } from './answer-error.ts'
import { type ApiRoute, openApiOf, registerRoutes } from './api-route.ts'
import { securityHeaders, serveConsole } from './console-files.ts'
import { hubFamilies } from './hub-families.ts'
import { inspectionRoute } from './inspection-route.ts'
import { limitHello } from './limit-hello.ts'
import { LiveSockets } from './live-sockets.ts'
import { closeUnreadBodies, notFound, portOptions } from './port-bounds.ts'
import { hubRoutes } from './routes.ts'
import { socketChannel } from './socket-channel.ts'
import { UnfinishedFrames } from './unfinished-frames.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A route that applications may call with an app token; others are only for people. */
    isForApps?: boolean
    /** For probes, under any host name and without a token. */
    isProbe?: boolean
  }
}

/** A room's HTTP services, registered behind the hub's own checks. */
export type HubPlugin = (app: FastifyInstance, hub: PluginHost) => Promise<void> | void

/** What a hub provides to the services of other rooms. */
export interface PluginHost {
  readonly alarms: AlarmBoard
  readonly passingAlarms: PassingAlarms
  readonly store: HubStore
  readonly runtime: Runtime
  /** A key's name in everything that is stored and shown. */
  outside(key: string): string
  /**
   * Throws if a request comes from a process that may not report locks: of another service, blocked, or one too many.
   */
  checkTeller(request: FastifyRequest, process: Required<Teller>): void
  /** Who sent a request, for the audit. */
  whoOf(request: FastifyRequest): string
  /** Records what a person did. */
  audit(who: string, what: string, before: unknown, after: unknown): Promise<void>
}

export interface HubServerOptions {
  readonly host: string
  readonly port: number
  readonly book: CredentialBook
  readonly sessions: PeopleSessions
  readonly userHeader: UserHeader | undefined
  readonly maxSignInsPerMinute: number
  readonly connections: (HttpBounds & UnfinishedFrameBounds) | undefined
  readonly allowedHosts: readonly string[]
  readonly consoleFolder: string | undefined
  readonly tls: { readonly cert: Buffer; readonly key: Buffer; readonly ca?: Buffer } | undefined
  readonly logger: FastifyBaseLogger
  readonly plugins: readonly HubPlugin[]
  /** Further routes of the hub's own API. */
  readonly routes: readonly ApiRoute[]
  readonly version: string
  /** The outcomes of metrics pushes; undefined if nothing is pushed. */
  readonly exports: OtlpExporter['counts'] | undefined
}

/**
 * Characters of a part of an address. Fastify's own bound of 100 would leave long keys without their routes; what a request's
 * head may have in all bounds this as well.
 */
const maxParamLength = 65_536

/** Who does not answer a goodbye, a browser without a network for one, is not waited for longer than `closeTimeout`. */
const socketOptions = { noServer: true, handleProtocols: chooseProtocol, closeTimeout: 2000 }

/** HTTP and WebSocket around a `HubCore`. */
export class HubServer {
  readonly app: FastifyInstance
  readonly #core: HubCore
  readonly #views: HubViews
  readonly #guard: AccessGuard
  readonly #options: HubServerOptions
  readonly #sensors: SensorSessions
  readonly #live: LiveSockets
  readonly #unfinished: UnfinishedFrames
  // One frame per message; larger ones are left for the collector to refuse, so that the sensor learns why and stays
  // connected.
  readonly #sockets: WebSocketServer
  // A console only listens.
  readonly #liveSockets = new WebSocketServer({ ...socketOptions, maxPayload: 4096 })
  #tls: RenewableTls | undefined
  #isDraining = false

  constructor(core: HubCore, options: HubServerOptions) {
    this.#core = core
    this.#options = options
    this.#views = core.views()
    this.#guard = new AccessGuard({ ...options, tokens: options.book })
    this.#sensors = core.sensorSessions()
    options.book.onChange(() => {
      this.#sensors.dropInvalid()
      this.#live.dropInvalid()
      // Loads what other hubs have changed; an unreachable store is reported elsewhere.
      core.barred.load().catch(() => {})
    })
    this.#live = new LiveSockets(this.#views, core.delivery, core.options.runtime)
    this.#unfinished = new UnfinishedFrames(core.options.runtime.timers, options.connections)
    const maxPayload = Math.max(16 * 1024 * 1024, core.options.maxReportBytes * 2)
    this.#sockets = new WebSocketServer({ ...socketOptions, maxPayload })
    const tls = options.tls && {
      https: {
        ...httpServerOptions(options.connections),
        handshakeTimeout: options.connections?.headersTimeoutMs ?? 10_000,
        ...options.tls,
        ...(options.tls.ca !== undefined && { requestCert: true, rejectUnauthorized: true }),
      },
    }
    this.app = Fastify({
      loggerInstance: options.logger,
      logController: new LogController({ disableRequestLogging: true }),
      forceCloseConnections: true,
      routerOptions: { maxParamLength },
      ...portOptions(options.connections),
      ...tls,
    }) as unknown as FastifyInstance
    boundHttpServer(this.app.server, options.connections)
    if (tls !== undefined) this.#tls = new RenewableTls(this.app.server as unknown as Server)
  }

  /** Registers everything and listens; returns the port. */
  async listen(): Promise<number> {
    const { app } = this
    app.addHook('onRequest', async (request, reply) => {
      for (const [name, value] of Object.entries(securityHeaders)) reply.header(name, value)
      const { isPage, isProbe } = request.routeOptions.config
      this.#guard.checkCall(request.raw, isPage ? 'page' : isProbe ? 'probe' : undefined)
      if (request.is404) throw notFound(app, request.method, request.url)
      await this.#guard.learn(request.headers)
    })
    closeUnreadBodies(app)
    app.setErrorHandler(answerError)
    app.setNotFoundHandler((request) => {
      throw notFound(app, request.method, request.url)
    })
    app.addContentTypeParser('text/plain', { parseAs: 'string' }, (_request, body, done) => done(null, body))
    // Many clients name a type with every call, also with one that has no body.
    const parseJson = app.getDefaultJsonParser('error', 'error')
    app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body: string, done) => {
      if (request.method === 'DELETE' && body === '') done(null, undefined)
      else parseJson(request, body, done)
    })
    this.#registerHealth()
    const { book, sessions, maxSignInsPerMinute } = this.#options
    const { runtime, logger } = this.#core.options
    const { barred, journal } = this.#core
    const barring = barredRoutes({
      barred,
      now: () => runtime.clock.now(),
      audit: journal.audit.bind(journal),
      onChange: () => this.#sensors.dropInvalid(),
    })
    const inspection = inspectionRoute(this.#core, this.#sensors)
    const own = [...hubRoutes(this.#core, this.#views), inspection, ...tokenRoutes(book), ...barring]
    const routes = [...own, ...this.#options.routes]
    signInRoutes(app, {
      book,
      sessions,
      guard: this.#guard,
      runtime,
      logger,
      maxAttemptsPerMinute: maxSignInsPerMinute,
      onSignOut: () => this.#live.dropInvalid(),
    })
    registerRoutes(app, routes, this.#guard)
    const document = openApiOf(routes, this.#options.version)
    app.get('/openapi.json', async () => document)
    await app.register(async (scope) => {
      // Other rooms' services: viewers may read, operators may change, and applications may report about themselves.
      const callers = new WeakMap<FastifyRequest, string>()
      const apps = new WeakMap<FastifyRequest, AppGrant>()
      scope.addHook('onRequest', async (request) => {
        const app = this.#appOf(request)
        if (app !== undefined) {
          apps.set(request, app)
          return
        }
        const onlyReads = request.method === 'GET' && request.routeOptions.config.changesByGet !== true
        const role = onlyReads ? 'viewer' : 'operator'
        callers.set(request, this.#guard.authorize(request.raw, role).who)
      })
      const { alarms, passingAlarms, store, options } = this.#core
      const host = {
        alarms,
        passingAlarms,
        store,
        runtime: options.runtime,
        outside: (key: string) => this.#core.outside(key),
        whoOf: (request: FastifyRequest) => callers.get(request) ?? apps.get(request)!.name,
        checkTeller: (request: FastifyRequest, process: Required<Teller>) =>
          this.#core.tellers.check('locks', apps.get(request), process, runtime.clock.now()),
        audit: journal.audit.bind(journal),
      }
      for (const plugin of this.#options.plugins) await plugin(scope, host)
    })
    serveConsole(app, this.#options.consoleFolder)
    app.server.on('upgrade', (request, socket, head) => void this.#upgrade(request, socket, head))
    await app.listen({ host: this.#options.host, port: this.#options.port })
    this.#sensors.start()
    this.#live.start()
    return (app.server.address() as AddressInfo).port
  }

  /** For new connections; those of an authority that is no longer trusted are closed. */
  useCertificate(certificates: ServerCertificates): void {
    this.#tls?.renew(certificates)
  }

  /** The hub's current figures. */
  families(): MetricFamily[] {
    return hubFamilies(this.#core, this.#views, this.#options.exports)
  }

  /** Closes all connections and stops listening. */
  async close(): Promise<void> {
    this.#isDraining = true
    this.#live.close()
    this.#sensors.close()
    this.#sockets.close()
    this.#liveSockets.close()
    await this.app.close()
  }

  #registerHealth(): void {
    const probe = { config: { isProbe: true } }
    this.app.get('/livez', probe, async () => ({ isLive: true }))
    this.app.get('/readyz', probe, async (request, reply) => {
      const alarms = this.#core.alarms.list()
      // A hub that decides alone still protects: taking it out of service would leave its sensors without one.
      const alarm = alarms.find(
        ({ id, severity }) =>
          severity === 'critical' && !(this.#core.isHeard && this.#core.keys.isAlone && isOfStore(id)),
      )
      const isReady = !this.#isDraining && alarm === undefined
      // A cause may name hosts and addresses.
      const reason = this.#isDraining ? 'draining' : alarm && this.#guard.troubleFor(request.raw, alarm.cause)
      return reply.code(isReady ? 200 : 503).send({ isReady, ...(reason !== undefined && { reason }) })
    })
    this.app.get('/metrics', async (request, reply) => {
      this.#guard.authorize(request.raw, 'viewer')
      return reply.type('text/plain; version=0.0.4; charset=utf-8').send(prometheusText(this.families()))
    })
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    // Nobody else listens yet: without this, a broken connection would crash the hub.
    const onError = () => socket.destroy()
    socket.on('error', onError)
    try {
      const path = request.url?.split('?')[0]
      this.#guard.checkCall(request, path === '/v1/sensor' ? 'sensor' : undefined)
      await this.#guard.learn(request.headers)
      socket.off('error', onError)
      const viewer = path === '/v1/live' ? this.#guard.authorize(request, 'viewer') : undefined
      if (viewer === undefined && path !== '/v1/sensor')
        throw new ApiProblem(404, 'FB_NOT_FOUND', `no WebSocket at ${path}`)
      const sockets = viewer === undefined ? this.#sockets : this.#liveSockets
      sockets.handleUpgrade(request, socket, head, (connection) => {
        if (viewer !== undefined) return this.#live.add(connection, viewer)
        const letIn = (token: string | undefined) =>
          this.#guard.appOf(request, token) ?? this.#guard.tokenProblem(request, 'app', token)
        const session = this.#sensors.open(this.#channelOf(connection, socket), letIn)
        limitHello(socket, connection, () => session.serviceId !== undefined)
        this.#unfinished.watch(socket, connection)
      })
    } catch (error) {
      refuseUpgrade(socket, error)
    }
  }

  /** The app whose token a request carries, on a route for applications. */
  #appOf({ routeOptions, raw }: FastifyRequest): AppGrant | undefined {
    return routeOptions.config.isForApps && this.#guard.hasTokens ? this.#guard.appOf(raw) : undefined
  }

  #channelOf(connection: WebSocket, stream: Duplex): SensorChannel {
    return socketChannel(connection, stream, () => this.#core.collector.countRefusal('too-large'))
  }
}

/** A WebSocket request with subprotocols must be answered with one of them, but never with the token. */
function chooseProtocol(protocols: Set<string>): string | false {
  return protocols.has('firebreak') ? 'firebreak' : false
}

function refuseUpgrade(socket: Duplex, error: unknown): void {
  const problem = error instanceof ApiProblem ? error : new ApiProblem(500, 'FB_INTERNAL', 'the hub failed')
  const body = JSON.stringify({ code: problem.code, message: problem.message })
  const status = `${problem.statusCode} ${problem.statusCode === 404 ? 'Not Found' : 'Refused'}`
  socket.end(
    `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}

function isOfStore(alarmId: string): boolean {
  return alarmId === 'board' || alarmId === 'store' || alarmId === 'lane'
}
