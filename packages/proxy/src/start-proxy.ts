import { Worker } from 'node:worker_threads'
import { ProxyStartError } from './errors.ts'
import { type ProxyOptions, type ResolvedProxyOptions, resolveProxyOptions } from './options.ts'
import { runCore } from './run-core.ts'

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
  const { port, close } = await runCore(resolved, false)
  return { port, close }
}

/** Worker threads that share one port: the kernel spreads connections over them. */
async function startWorkers(
  options: ProxyOptions,
  { workers: count, maxClients, port: wanted }: ResolvedProxyOptions,
): Promise<FirebreakProxy> {
  if (options.path !== undefined) throw new ProxyStartError('workers share a port; a unix socket has one thread only')
  const workers: Worker[] = []
  const close = async () => {
    await Promise.all(
      workers.map(async (worker) => {
        const exited = new Promise((resolve) => worker.once('exit', resolve))
        worker.postMessage('close')
        await exited
      }),
    )
  }
  try {
    let port = wanted
    for (let index = 0; index < count; index++) {
      const data = { ...options, port, workers: 1, maxClients: Math.ceil(maxClients / count) }
      const { worker, port: taken } = await startWorker(data)
      workers.push(worker)
      port = taken
    }
    return { port, close }
  } catch (error) {
    await close()
    throw error
  }
}

function startWorker(options: ProxyOptions): Promise<{ worker: Worker; port: number }> {
  // From source and from the build alike: the file beside this one.
  const file = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url)
  return new Promise((resolve, reject) => {
    const worker = new Worker(file, { workerData: options })
    worker.once('message', (port: number) => resolve({ worker, port }))
    worker.once('error', (cause) => reject(new ProxyStartError(`a thread cannot start: ${cause.message}`, { cause })))
    worker.once('exit', (code) => reject(new ProxyStartError(`a thread ended with ${code} before it listened`)))
  })
}
