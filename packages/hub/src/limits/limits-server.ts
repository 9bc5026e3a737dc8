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

/** How the rule service runs alone. */
export interface LimitsServerOptions {
  /** The policy's file, in any of its forms; `reload` reads it again. @default no rules */
  readonly policyFile?: string
  /**
   * Where policies are kept over restarts, with their versions and who made them; the file is then what an empty folder
   * begins with. @default nowhere: a start begins with the file, at version 1
   */
  readonly dataFolder?: string
  /** Where counters live. @default in this process */
  readonly store?: RuleStore
  /** @default '127.0.0.1' */
  readonly host?: string
  /** 0 takes a free one. @default 4980 */
  readonly port?: number
  /** Asked for as `Authorization: Bearer …` by every call but `alive`; needed where the host is not loopback. */
  readonly token?: string
  /** Answer under Koala's own paths too. @default false */
  readonly koalaPaths?: boolean
  /** What strangers may take of the port. @default those of `HttpBounds` */
  readonly connections?: HttpBounds
}

/** A running rule service. */
export interface LimitsServer {
  readonly url: string
  readonly service: RuleService
  /** Reads the policy file again and gives the version in force; rejects where it is broken, and the old one stays. */
  readonly reload: () => Promise<number>
  close(): Promise<void>
}

/** Beside the files of a hub, where both use one folder. */
const file = 'limits.sqlite'
const problemType = 'application/problem+json'

/** Starts the rule service alone. */
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
        .send({ status: 401, title: 'A token is needed' })
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
