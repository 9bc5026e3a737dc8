import { timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { InvalidOptionError, systemRuntime } from '@firebreak/core'
import { boundHttpServer, type HttpBounds } from '@firebreak/core/node'
import { parsePolicy, RuleService, type RuleStore } from '@firebreak/limits/policy'
import { fastify } from 'fastify'
import { checkServiceToken } from '../access/secrets.ts'
import { AccessGuard, isLoopback } from '../http/access-guard.ts'
import { closeUnreadBodies, portOptions, refuseStrangers } from '../http/port-bounds.ts'
import { MemoryStore } from '../store/memory-store.ts'
import { SqliteStore } from '../store/sqlite-store.ts'
import { limitsRoutes, sendProblem } from './limits-routes.ts'
import { PolicyKeeper } from './policy-keeper.ts'

/** Options of the stand-alone rule service. */
export interface LimitsServerOptions {
  /** The policy file, in any supported format; `reload` reads it again. @default no rules */
  readonly policyFile?: string
  /**
   * Where policies are kept across restarts, with their versions and authors; the file is then only the start for an
   * empty folder. @default nowhere: each start uses the file, at version 1
   */
  readonly dataFolder?: string
  /** Where counters live. @default in this process */
  readonly store?: RuleStore
  /** @default '127.0.0.1' */
  readonly host?: string
  /** 0 picks a free one. @default 4980 */
  readonly port?: number
  /** Required as `Authorization: Bearer …` by every call except `alive`; must be set if the host is not loopback. */
  readonly token?: string
  /** Also answer under Koala's own paths. @default false */
  readonly koalaPaths?: boolean
  /** Bounds of the port. @default those of `HttpBounds` */
  readonly connections?: HttpBounds
}

/** A running rule service. */
export interface LimitsServer {
  readonly url: string
  readonly service: RuleService
  /** Reloads the policy file and returns the version in force; rejects if it is invalid, and the old one stays. */
  readonly reload: () => Promise<number>
  close(): Promise<void>
}

/** Next to a hub's files, if both use one folder. */
const file = 'limits.sqlite'
const problemType = 'application/problem+json'

/** Starts the stand-alone rule service. */
export async function startLimitsServer(options: LimitsServerOptions = {}): Promise<LimitsServer> {
  const { host = '127.0.0.1', port = 4980, policyFile, token } = options
  if (!isLoopback(host)) {
    if (token === undefined) {
      throw new InvalidOptionError('token', undefined, `given where the host is not loopback (it is ${host})`)
    }
    checkServiceToken(token)
  }
  const service = new RuleService(options.store === undefined ? {} : { store: options.store })
  const readPolicy =
    policyFile === undefined ? undefined : () => ({ text: readFileSync(policyFile, 'utf8'), file: policyFile })
  // An invalid file is reported before anything is opened.
  const source = readPolicy?.()
  const first = source && { policy: parsePolicy(source.text, source.file), origin: source.file }
  const store = options.dataFolder === undefined ? new MemoryStore() : new SqliteStore(join(options.dataFolder, file))
  const keeper = new PolicyKeeper(service, store, systemRuntime, (error) => {
    process.emitWarning(`firebreak limits: ${error.message}`)
  })
  await keeper.open(first)
  const reload = async () => {
    const { text, file: origin } = readPolicy?.() ?? { text: undefined, file: '' }
    if (text === undefined) return service.version
    return keeper.change({ policy: parsePolicy(text, origin), origin, who: 'SIGHUP' })
  }
  const app = fastify({ forceCloseConnections: true, ...portOptions(options.connections) })
  boundHttpServer(app.server, options.connections)
  closeUnreadBodies(app)
  app.setErrorHandler(sendProblem)
  refuseStrangers(app, new AccessGuard({ tokens: undefined, allowedHosts: [] }), token !== undefined)
  if (token !== undefined) {
    const wanted = Buffer.from(`Bearer ${token}`)
    app.addHook('onRequest', async (request, reply) => {
      if (request.url.startsWith('/v1/limits/alive') || request.url.startsWith('/monitor/alive')) return
      const given = Buffer.from(request.headers.authorization ?? '')
      if (given.length === wanted.length && timingSafeEqual(given, wanted)) return
      await reply
        .code(401)
        .header('www-authenticate', 'Bearer')
        .type(problemType)
        .send({ status: 401, title: 'A token is required' })
    })
  }
  await app.register(limitsRoutes, {
    service,
    change: keeper.change,
    koalaPaths: options.koalaPaths ?? false,
    ...(readPolicy && { readPolicy }),
  })
  const close = async () => {
    await app.close()
    keeper.close()
    await store.close()
  }
  try {
    return { url: await app.listen({ host, port }), service, reload, close }
  } catch (error) {
    await close()
    throw error
  }
}
