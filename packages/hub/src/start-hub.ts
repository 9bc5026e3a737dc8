import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { explainDiskTrouble, type Invalidation, plainLines, systemRuntime } from '@firebreak/core'
import { metricsSignal, OtlpExporter, type OtlpOptions, resolveOtlpOptions } from '@firebreak/core/metrics'
import { type HttpBounds, type KeyRedactionOptions, keyRedaction, tooOldNode, watchFiles } from '@firebreak/core/node'
import { parseRule, type Rule } from '@firebreak/core/rules'
import type { FastifyBaseLogger } from 'fastify'
import { pino } from 'pino'
import type { Credential, Role } from './access/credential.ts'
import { CredentialBook } from './access/credential-book.ts'
import { fixedCredentials, type HubTokens } from './access/fixed-credentials.ts'
import { PeopleSessions } from './access/people-sessions.ts'
import { readTokens } from './access/tokens-file.ts'
import { KafkaIngest } from './collect/kafka-ingest.ts'
import { NatsIngest } from './collect/nats-ingest.ts'
import { processUsage } from './collect/process-load.ts'
import { StreamedReports } from './collect/streamed-reports.ts'
import { engineRoutes } from './engine/engine-routes.ts'
import { EngineSensor } from './engine/engine-sensor.ts'
import { HubConfigError, NotLoopbackError } from './errors.ts'
import { finderRunRoutes } from './findings/finder-run-routes.ts'
import { FinderRuns } from './findings/finder-runs.ts'
import { parseFinderPlans, ScheduledFinders } from './findings/scheduled-finders.ts'
import { transportRoutes } from './fleet/transport-routes.ts'
import { isLoopback, type UserHeader } from './http/access-guard.ts'
import { type HubPlugin, HubServer } from './http/hub-server.ts'
import { HubCore } from './hub-core.ts'
import type { UnfinishedFrameBounds } from './hub-options.ts'
import { checkPace, type HubCoreOptions } from './hub-options.ts'
import { prewarmRoutes } from './prewarm/prewarm-routes.ts'
import { importJobs, Prewarmer } from './prewarm/prewarmer.ts'
import { tellUnreached } from './prewarm/tell-unreached.ts'
import { openConfigCentre } from './publish/config-centre.ts'
import { TablePublisher } from './publish/table-publisher.ts'
import type { HubStore } from './store/hub-store.ts'
import { MemoryStore } from './store/memory-store.ts'
import { openRedisStore } from './store/open-redis-store.ts'
import { SqliteStore } from './store/sqlite-store.ts'
import { startTraces } from './traces/start-traces.ts'
import type { WatcherSetting } from './watchers/watcher-settings.ts'

/** Options of a hub. */
export interface HubOptions extends HubCoreOptions, KeyRedactionOptions {
  /** Where to listen; an address beyond loopback needs `tokens`. @default '127.0.0.1' */
  readonly host?: string
  /** 0 picks a free one. @default 0 */
  readonly port?: number
  /** Where rules, history and audit are kept (`hub.sqlite`). @default none: in memory only */
  readonly dataFolder?: string
  /** A Redis or Redis Cluster that several hubs share, instead of `dataFolder`: `redis://host:port[,host:port…]`. @default none */
  readonly storeUrl?: string
  /** Also take reports from this NATS JetStream: `nats://[user:password@]host:port`. @default none */
  readonly natsUrl?: string
  /**
   * Also take reports from these Kafka brokers: `kafka://[user:password@]host:port[,host:port…][/topic]`. @default none
   */
  readonly kafkaUrl?: string
  /**
   * Also publish tables to this config centre: `etcd://host:port/root`, `zookeeper://…`, `consul://…`, `nacos://…`.
   * @default none
   */
  readonly publishTo?: string
  /** Protected servers to query for their own statistics: `clusterId=redis://host:port`. @default [] */
  readonly engines?: readonly string[]
  /**
   * Searches `engines` for hot or big keys: `CLUSTER hot|big every 10m` or `CLUSTER hot|big 0 3 * * * [in ZONE]`.
   * @default []
   */
  readonly finderSchedule?: readonly string[]
  /** The caller's own store, instead of `dataFolder`. */
  readonly store?: HubStore
  /** Initial rules, as users write them, for a store without any. @default [] */
  readonly initialRules?: readonly unknown[]
  /** The built console. @default none: a page that says so */
  readonly consoleFolder?: string
  /**
   * App and user tokens, in addition to those in the store. @default none: everyone on this machine may do everything
   */
  readonly tokens?: HubTokens
  /** The file of `tokens`, reloaded when it changes. @default none */
  readonly tokensFile?: string
  /**
   * The header in which a proxy in front of the hub passes the user it signed in: `x-forwarded-email` …. @default none
   */
  readonly userHeader?: string
  /** The addresses of that proxy. @default 127.0.0.1 and ::1 */
  readonly userHeaderFrom?: readonly string[]
  /** The role of users it signed in who have no entry in `tokens`. @default none: they are refused */
  readonly userHeaderRole?: Role
  /** Failed sign-in attempts allowed per minute and address. @default 10 */
  readonly maxSignInsPerMinute?: number
  /**
   * Bounds of the port: connections, and time for requests. @default those of `HttpBounds` and `UnfinishedFrameBounds`
   */
  readonly connections?: HttpBounds & UnfinishedFrameBounds
  /** Names, besides loopback and its own addresses, under which browsers reach the hub. @default [] */
  readonly allowedHosts?: readonly string[]
  /** PEM files; with `caFile`, callers must present a certificate signed by it. @default plain HTTP */
  readonly tls?: { readonly certFile: string; readonly keyFile: string; readonly caFile?: string }
  /** Puts a value into the protected Redis, for pre-warming with values. @default none: such jobs are refused */
  readonly writeValue?: (redisClusterId: string, key: string, value: string) => Promise<void>
  /** Sources of changes: replica streams, append-only files, binlogs. @default [] */
  readonly watchers?: readonly WatcherSetting[]
  /** Also pushes the metrics to an OpenTelemetry collector. @default nothing is pushed */
  readonly otlp?: OtlpOptions
  /** Services of other rooms, behind the hub's checks. @default [] */
  readonly plugins?: readonly HubPlugin[]
  /** @default pino at level `logLevel` on stderr */
  readonly logger?: FastifyBaseLogger
  /** @default 'info' */
  readonly logLevel?: string
}

/** A running hub. */
export interface Hub {
  readonly url: string
  readonly host: string
  readonly port: number
  /** The hub without its network, for embedding and tests. */
  readonly core: HubCore
  /** Reports received over NATS or Kafka since the start, including refused ones. */
  readonly streamedReports: number
  /** Sends an invalidation to every sensor; returns its sequence. */
  publishInvalidation(invalidation: Omit<Invalidation, 'sequence'>): number
  /** Closes all connections, writes what is pending, and stops. */
  close(): Promise<void>
}

/** The version that the API's document and the log name. */
const version = (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string })
  .version

/** Starts a hub in this process. */
export async function startHub(options: HubOptions = {}): Promise<Hub> {
  const { host = '127.0.0.1', port = 0, tokens } = options
  const trouble = tooOldNode('the hub')
  if (trouble !== undefined) throw new HubConfigError('node', trouble)
  const fixed = tokens === undefined ? [] : fixedCredentials(tokens, systemRuntime.clock.now())
  // Validates all options before anything is opened.
  checkPace(options)
  const initialRules = (options.initialRules ?? []).map(parseRule)
  const tls = readTls(options.tls)
  const otlp = resolveOtlpOptions(options.otlp)
  const redactKey = options.redactKey ?? keyRedaction(options)
  const { logger, onFailure: onLogFailure } = options.logger
    ? { logger: options.logger, onFailure: () => {} }
    : makeLogger(options.logLevel ?? 'info')
  const engines = (options.engines ?? []).map(parseEngine)
  const finderPlans = parseFinderPlans(options.finderSchedule ?? [], engines)
  const centre = options.publishTo === undefined ? undefined : openConfigCentre(options.publishTo)
  const store = options.store ?? (await openStore(options))
  const core = await HubCore.open(store, {
    usage: processUsage(options.runtime ?? systemRuntime),
    ...options,
    logger,
    ...(redactKey !== undefined && { redactKey }),
  })
  const { book, sessions } = await openAccess(core, fixed, host)
  if (core.isHeard) await seedRules(core, initialRules)
  // Retried until it succeeds; does nothing if the store has any rules.
  else core.journal.write('rules file', () => seedRules(core, initialRules))
  const { runtime, maxReportAgeMs } = core.options
  const { alarms, collector, delivery } = core
  onLogFailure((error) => {
    const cause = `the log cannot be written: ${explainDiskTrouble(error)}`
    alarms.raise({ id: 'log', severity: 'warning', cause, retry: 'log lines are lost until then, nothing else' })
  })
  const sensors = engines.map(
    (engine) =>
      new EngineSensor({
        ...engine,
        slots: core.keys.slots,
        traffic: core.fleet.traffic,
        runtime,
        outside: (key) => core.outside(key),
      }),
  )
  if (options.dataFolder !== undefined) await importJobs(join(options.dataFolder, 'prewarm.json'), store)
  const prewarmer = new Prewarmer({
    store,
    warm: (job) => core.keys.prewarm(job),
    services: () => core.fleet.hosts.services(),
    writeValue: options.writeValue,
    onFailure: ({ keys }, error) => {
      const cause = `${keys.length} keys could not be pre-warmed: ${error.message}`
      alarms.raise({ id: 'prewarm', severity: 'warning', cause, retry: 'it will not be retried' })
    },
    onUnreached: (jobs) => tellUnreached(alarms, jobs),
    runtime,
  })
  const finders = new FinderRuns({
    servers: engines,
    runtime,
    outside: redactKey,
    onEnd: (run) => scheduled.ended(run),
  })
  const scheduled = new ScheduledFinders({ plans: finderPlans, finders, core })
  const resource = {
    'service.name': 'firebreak-hub',
    'service.version': version,
    'service.instance.id': core.options.hubId,
    'host.name': hostname(),
  }
  const push = { resource, logger, timers: runtime.timers }
  const exporter = otlp && new OtlpExporter({ ...push, otlp, signal: metricsSignal(async () => server.families()) })
  const tracer = otlp && startTraces(core, otlp, push)
  const reports = new StreamedReports({ collector, maxReportAgeMs, clock: runtime.clock, book })
  const streamed = { runtime, logger, alarms, maxReportAgeMs, reports }
  const streams = [
    ...(options.natsUrl === undefined ? [] : [new NatsIngest({ url: options.natsUrl, ...streamed })]),
    ...(options.kafkaUrl === undefined ? [] : [new KafkaIngest({ url: options.kafkaUrl, ...streamed })]),
  ]
  const server = new HubServer(core, {
    host,
    port,
    book,
    sessions,
    userHeader: userHeaderOf(options),
    maxSignInsPerMinute: options.maxSignInsPerMinute ?? 10,
    connections: options.connections,
    allowedHosts: options.allowedHosts ?? [],
    consoleFolder: options.consoleFolder,
    tls,
    logger,
    plugins: [...(options.plugins ?? []), (app) => engineRoutes(app, { sensors })],
    routes: [
      ...prewarmRoutes({
        prewarmer,
        plan: (wish) => core.keys.planPrewarm(wish),
        endPrewarm: (redisClusterId, key, who) => core.keys.endPrewarm(redisClusterId, key, who),
        audit: core.journal.audit.bind(core.journal),
        outside: (key) => core.outside(key),
        isRedacting: redactKey !== undefined,
      }),
      ...finderRunRoutes(finders, core.journal.audit.bind(core.journal)),
      ...transportRoutes({ core, streams, centre: centre?.name }),
    ],
    version,
    exports: exporter?.counts,
  })
  const publisher =
    centre === undefined
      ? undefined
      : new TablePublisher({
          ...{ centre, runtime, delivery, alarms, standing: core.keys },
          entryTtlMs: core.options.entryTtlMs,
        })
  let boundPort: number
  try {
    boundPort = await server.listen()
  } catch (error) {
    await core.close()
    throw error
  }
  core.start()
  book.start()
  const watched = [watchTokens(options.tokensFile, book, core), watchTls(options.tls, server, core)]
  prewarmer.start()
  for (const stream of streams) stream.start()
  publisher?.start()
  scheduled.start()
  exporter?.start()
  for (const sensor of sensors) sensor.start()
  // They resume at the positions in the store.
  const startWatchers = () => core.watchers.start(options.watchers ?? [])
  if (core.isHeard) await startWatchers()
  else
    void core.heard.then(startWatchers).catch((error: Error) => {
      const cause = `the sources of changes could not be started: ${error.message}`
      alarms.raise({ id: 'watchers', severity: 'critical', cause, retry: 'restart the hub' })
    })
  const scheme = options.tls === undefined ? 'http' : 'https'
  const url = `${scheme}://${host.includes(':') ? `[${host}]` : host}:${boundPort}`
  logger.info({ url, hubId: core.options.hubId, store: store.name, epoch: core.delivery.epoch }, 'the hub is listening')
  let closing: Promise<void> | undefined
  return {
    url,
    host,
    port: boundPort,
    core,
    get streamedReports() {
      return reports.count
    },
    publishInvalidation: (invalidation) => core.lane.publish(invalidation),
    close() {
      prewarmer.close()
      scheduled.close()
      finders.close()
      for (const sensor of sensors) sensor.close()
      for (const files of watched) files?.close()
      closing ??= Promise.all([
        server.close(),
        ...streams.map((stream) => stream.close()),
        publisher?.close(),
        exporter?.close(),
        tracer?.close(),
      ])
        .then(() => book.close())
        .then(() => core.close())
      return closing
    },
  }
}

async function openStore({ storeUrl, dataFolder }: HubOptions): Promise<HubStore> {
  if (storeUrl === undefined) {
    return dataFolder === undefined ? new MemoryStore() : new SqliteStore(join(dataFolder, 'hub.sqlite'))
  }
  if (dataFolder !== undefined) {
    throw new HubConfigError('storeUrl', 'storeUrl and dataFolder are both set: a hub has only one store')
  }
  return openRedisStore(storeUrl)
}

function parseEngine(text: string): { readonly redisClusterId: string; readonly url: string } {
  const [, redisClusterId, url] = /^([^=]+)=((?:rediss?|unix):\/\/.+)$/.exec(text) ?? []
  // The text may contain a password: it must not be in the message.
  if (redisClusterId === undefined || url === undefined) {
    throw new HubConfigError('engines', 'engines: each must be clusterId=redis://host:port')
  }
  return { redisClusterId, url }
}

/** Who may call: credentials from the file and the store. Beyond loopback there must be at least one. */
async function openAccess(core: HubCore, fixed: readonly Credential[], host: string) {
  const { journal, store, options } = core
  const audit = journal.audit.bind(journal)
  const book = new CredentialBook({ store, runtime: options.runtime, logger: options.logger, audit, fixed })
  const sessions = new PeopleSessions(store, options.runtime, book)
  try {
    if (core.isHeard) {
      await book.open()
      await sessions.open()
    }
    if (!isLoopback(host) && book.isKnown && !book.isLocked) throw new NotLoopbackError(host)
  } catch (error) {
    await core.close()
    throw error
  }
  return { book, sessions }
}

function userHeaderOf(options: HubOptions): UserHeader | undefined {
  const { userHeader, userHeaderFrom = ['127.0.0.1', '::1'], userHeaderRole } = options
  return userHeader === undefined
    ? undefined
    : { name: userHeader.toLowerCase(), from: userHeaderFrom, role: userHeaderRole }
}

/** Reloads a changed tokens file; an invalid one changes nothing, and raises an alarm. */
function watchTokens(file: string | undefined, book: CredentialBook, { options, alarms }: HubCore) {
  if (file === undefined) return undefined
  const { runtime, logger } = options
  return watchFiles([file], runtime.timers, () => {
    try {
      book.setFixed(fixedCredentials(readTokens(file), runtime.clock.now()))
      alarms.clear('tokens')
      logger.info({ file }, 'the tokens file was reloaded')
    } catch (error) {
      const cause = `the new tokens file cannot be used: ${(error as Error).message}`
      alarms.raise({
        id: 'tokens',
        severity: 'warning',
        cause,
        retry: 'the previous tokens stay in force; it is reloaded when it next changes',
      })
    }
  })
}

/** Renewed certificates are used for new connections at once. */
function watchTls(tls: HubOptions['tls'], server: HubServer, { options, alarms }: HubCore) {
  if (tls === undefined) return undefined
  const files = [tls.certFile, tls.keyFile, ...(tls.caFile === undefined ? [] : [tls.caFile])]
  return watchFiles(files, options.runtime.timers, () => {
    try {
      server.useCertificate(readTls(tls)!)
      alarms.clear('certificate')
      options.logger.info({ files }, 'the certificate was reloaded')
    } catch (error) {
      const cause = `the new certificate cannot be used: ${(error as Error).message}`
      alarms.raise({
        id: 'certificate',
        severity: 'critical',
        cause,
        retry: 'the previous one stays in use; it is reloaded when it next changes',
      })
    }
  })
}

async function seedRules(core: HubCore, rules: readonly Rule[]): Promise<void> {
  if (rules.length === 0 || !(await core.store.seed(rules))) return
  await core.book.load()
  for (const rule of rules) await core.journal.audit('start', `add rule ${rule.id}`, null, rule)
}

function readTls(tls: HubOptions['tls']): { cert: Buffer; key: Buffer; ca?: Buffer } | undefined {
  if (tls === undefined) return undefined
  const read = (field: string, file: string) => {
    try {
      return readFileSync(file)
    } catch (cause) {
      throw new HubConfigError(`tls.${field}`, `tls.${field}: ${(cause as Error).message}`, { cause })
    }
  }
  const ca = tls.caFile === undefined ? {} : { ca: read('caFile', tls.caFile) }
  return { cert: read('certFile', tls.certFile), key: read('keyFile', tls.keyFile), ...ca }
}

interface OwnLogger {
  readonly logger: FastifyBaseLogger
  /** Calls back when a line could not be written. */
  onFailure(listener: (error: Error) => void): void
}

function makeLogger(level: string): OwnLogger {
  // On stderr: a command's stdout is its result.
  const destination = pino.destination(2)
  // JSON leaves some characters unescaped that a terminal would interpret.
  const plain = { write: (line: string) => void destination.write(plainLines(line)) }
  let tell: (error: Error) => void = () => {}
  // Without a listener the error would end the process: a full disk must not take the hub down.
  destination.on('error', (error: Error) => tell(error))
  return {
    logger: pino({ level, base: { name: 'firebreak-hub' } }, plain) as unknown as FastifyBaseLogger,
    onFailure(listener) {
      tell = listener
    },
  }
}
