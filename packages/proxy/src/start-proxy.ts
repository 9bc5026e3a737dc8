import { randomUUID } from 'node:crypto'
import { Worker } from 'node:worker_threads'
import { ProxyStartError } from './errors.ts'
import { type ProxyOptions, type ResolvedProxyOptions, resolveProxyOptions } from './options.ts'
import { runCore } from './run-core.ts'
import { ThreadCounts } from './threads/thread-counts.ts'
import { alone } from './threads/thread-place.ts'
import { WorkerThreads } from './threads/worker-threads.ts'
import type { WorkerData } from './worker.ts'

/** A proxy that listens. */
export interface FirebreakProxy {
  /** 0 for one on a unix socket. */
  readonly port: number
  /** Takes no more clients, lets requests on their way end for `drainMs`, then closes everything. */
  close(): Promise<void>
}

/** Starts a proxy; resolves once it listens. */
export async function startProxy(options: ProxyOptions): Promise<FirebreakProxy> {
  const resolved = resolveProxyOptions(options)
  if (resolved.workers > 1) return startWorkers(options, resolved)
  const { port, close } = await runCore(resolved, alone())
  return { port, close }
}

/** Worker threads that share one port: the kernel spreads connections over them. */
async function startWorkers(
  options: ProxyOptions,
  { workers: count, port: wanted }: ResolvedProxyOptions,
): Promise<FirebreakProxy> {
  if (options.path !== undefined) throw new ProxyStartError('workers share a port; a unix socket has one thread only')
  const channel = `firebreak ${randomUUID()}`
  const memory = ThreadCounts.memoryFor(count)
  // From source and from the build alike: the file beside this one.
  const file = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url)
  const threads = await WorkerThreads.start({
    count,
    port: wanted,
    make: (index, port) => {
      const own = { ...options, ...shieldOf(options, index, count), port, workers: 1 }
      const workerData: WorkerData = { options: own, channel, place: { index, count, memory } }
      return new Worker(file, { workerData })
    },
    onLost: (index, { message }) => {
      new ThreadCounts(index, memory).forget()
      process.emitWarning(`thread ${index} of the proxy has ended (${message}); another takes its place`, {
        type: 'FirebreakWarning',
        code: 'proxy-thread',
      })
    },
  })
  return { port: threads.port, close: () => threads.close() }
}

/** The shield of one thread of several: each is a sensor of its own and admits its share of a limit. */
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
