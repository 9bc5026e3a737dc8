import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { Worker } from 'node:worker_threads'
import { plainLines, systemRuntime } from '@firebreak/core'
import {
  type MetricFamily,
  metricsSignal,
  OtlpExporter,
  type ResolvedOtlpOptions,
  resolveOtlpOptions,
} from '@firebreak/core/metrics'
import { tooOldNode } from '@firebreak/core/node'
import { checkExposure } from './check-exposure.ts'
import { ProxyStartError } from './errors.ts'
import { type MetricsServer, serveMetrics } from './observe/metrics-server.ts'
import { mergeThreads, processFamilies } from './observe/proxy-families.ts'
import { type ProxyOptions, type ResolvedProxyOptions, resolveProxyOptions } from './options.ts'
import { runCore } from './run-core.ts'
import { ThreadCounts } from './threads/thread-counts.ts'
import { alone } from './threads/thread-place.ts'
import { WorkerThreads } from './threads/worker-threads.ts'
import type { WorkerData, WorkerOrder, WorkerWord } from './worker.ts'

/** A running proxy. */
export interface FirebreakProxy {
  /** 0 for a proxy on a unix socket. */
  readonly port: number
  /** Where its metrics are served; undefined if they are not. */
  readonly metricsPort: number | undefined
  /** The proxy's metrics, thread by thread: what is served and pushed to a collector. */
  families(): Promise<MetricFamily[]>
  /** Accepts no more clients, gives pending requests `drainMs` to finish, then closes everything. */
  close(): Promise<void>
}

/** Starts a proxy; resolves once it is listening. */
export async function startProxy(options: ProxyOptions): Promise<FirebreakProxy> {
  const trouble = tooOldNode('the proxy')
  if (trouble !== undefined) throw new ProxyStartError(trouble)
  const resolved = resolveProxyOptions(options)
  const otlp = resolveOtlpOptions(options.otlp)
  await checkExposure(resolved)
  const { port, families, close } = await (resolved.workers > 1
    ? startWorkers(options, resolved)
    : startAlone(resolved))
  const collect = async () => [...mergeThreads(await families()), ...processFamilies()]
  const metrics = await serveMetricsOf(resolved, collect).catch(async (error: unknown) => {
    await close()
    throw error
  })
  const exporter = otlp && makeExporter(otlp, resolved, port, collect)
  exporter?.start()
  return {
    port,
    metricsPort: metrics?.port,
    families: collect,
    async close() {
      // The exporter first: it reads the last figures before the threads are told to close.
      await Promise.all([exporter?.close(), metrics?.close(), close()])
    },
  }
}

async function serveMetricsOf(
  { host, metricsPort: port, metricsHost = host, metricsToken: token }: ResolvedProxyOptions,
  collect: () => Promise<MetricFamily[]>,
): Promise<MetricsServer | undefined> {
  return port === undefined ? undefined : serveMetrics({ host: metricsHost, port, token }, collect)
}

/** What serves, in this thread or in several. */
interface RunningThreads {
  readonly port: number
  /** The families of each thread. */
  families(): Promise<readonly (readonly MetricFamily[])[]>
  close(): Promise<void>
}

async function startAlone(options: ResolvedProxyOptions): Promise<RunningThreads> {
  const { core, port, close } = await runCore(options, alone())
  return { port, families: async () => [core.families()], close }
}

/** The version in pushed metrics. */
const version = (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string })
  .version

function makeExporter(
  otlp: ResolvedOtlpOptions,
  { shield, logger }: ResolvedProxyOptions,
  port: number,
  collect: () => Promise<MetricFamily[]>,
): OtlpExporter {
  const host = hostname()
  const resource = {
    'service.name': 'firebreak-proxy',
    'service.version': version,
    'service.instance.id': shield?.instanceId ?? `${host}-${process.pid}-${port}`,
    'host.name': host,
  }
  return new OtlpExporter({ otlp, resource, signal: metricsSignal(collect), logger })
}

/** Worker threads that share one port: the kernel spreads connections over them. */
async function startWorkers(
  { otlp: _, logger: __, metricsPort: ___, metricsToken: ____, ...options }: ProxyOptions,
  { workers: count, port: wanted, logger }: ResolvedProxyOptions,
): Promise<RunningThreads> {
  if (options.path !== undefined)
    throw new ProxyStartError('workers share a port; a unix socket supports only one thread')
  if (options.sharedPort) throw new ProxyStartError('sharedPort requires a single thread; leave workers at 1')
  const channel = `firebreak ${systemRuntime.newId()}`
  const memory = ThreadCounts.memoryFor(count)
  // From source and from the build alike: the file next to this one.
  const file = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url)
  const threads = await WorkerThreads.start({
    count,
    port: wanted,
    make: (index, port) => {
      const own = { ...options, ...shieldOf(options, index, count), port, workers: 1 }
      const workerData: WorkerData = { options: own, channel, place: { index, count, memory } }
      const worker = new Worker(file, { workerData })
      return worker.on('message', (word: WorkerWord) => {
        if (typeof word === 'object' && 'level' in word) logger[word.level](word.data, word.message)
      })
    },
    onLost: (index, { message }) => {
      new ThreadCounts(index, memory).forget()
      process.emitWarning(
        plainLines(`thread ${index} of the proxy has ended (${message}); starting another in its place`),
        {
          type: 'FirebreakWarning',
          code: 'proxy-thread',
        },
      )
    },
  })
  return {
    port: threads.port,
    families: () => Promise.all(Array.from({ length: count }, (_, index) => askFamilies(threads.at(index)))),
    close: () => threads.close(),
  }
}

/** A thread's families; none if it has ended. */
function askFamilies(worker: Worker | undefined): Promise<readonly MetricFamily[]> {
  if (worker === undefined) return Promise.resolve([])
  return new Promise((resolve) => {
    const onExit = () => resolve([])
    worker.once('exit', onExit)
    worker.on('message', function onWord(word: WorkerWord) {
      if (typeof word !== 'object' || 'level' in word) return
      worker.off('exit', onExit).off('message', onWord)
      resolve(word)
    })
    worker.postMessage('metrics' satisfies WorkerOrder)
  })
}

/** The shield of one of several threads: each is a sensor of its own and admits its share of a limit. */
function shieldOf({ shield }: ProxyOptions, index: number, count: number): Pick<ProxyOptions, 'shield'> {
  if (shield === undefined) return {}
  const { instanceId, limitProcesses = 1 } = shield
  return {
    shield: {
      ...shield,
      limitProcesses: limitProcesses * count,
      ...(instanceId !== undefined && { instanceId: `${instanceId}-${index}` }),
    },
  }
}
