import { threadId } from 'node:worker_threads'
import { systemRuntime } from '@firebreak/core'
import { type Listener, listen } from './listen.ts'
import type { ResolvedProxyOptions } from './options.ts'
import { ProxyCore } from './proxy-core.ts'
import type { ThreadPlace } from './threads/thread-place.ts'
import { chooseTransport } from './transport/choose-transport.ts'
import { netTransports } from './transport/net-transport.ts'
import { rawTransports } from './transport/raw-transport.ts'
import { findMode } from './upstream/find-mode.ts'

/** A proxy within one thread. */
export interface RunningCore {
  readonly core: ProxyCore
  readonly port: number
  close(): Promise<void>
}

/** Starts a proxy within this thread; resolves once it is listening. */
export function runCore(options: ResolvedProxyOptions, place: ThreadPlace): Promise<RunningCore> {
  return keptAlive(() => start(options, place))
}

/**
 * A runtime's timers do not keep the process alive, and a proxy may have nothing else before it listens and while it
 * closes.
 */
async function keptAlive<Result>(work: () => Promise<Result>): Promise<Result> {
  const alive = setInterval(() => {}, 2 ** 30)
  try {
    return await work()
  } finally {
    clearInterval(alive)
  }
}

async function start(given: ResolvedProxyOptions, place: ThreadPlace): Promise<RunningCore> {
  const runtime = systemRuntime
  const options = { ...given, transport: await chooseTransport(given, runtime) }
  const transports = options.transport === 'raw' ? rawTransports! : netTransports
  const { targets, identity, connectWaitMs } = options
  const settings = { transports, runtime, connectWaitMs }
  const mode = options.mode === 'auto' ? await findMode(targets, identity, settings) : options.mode
  const core = new ProxyCore(options, mode, { transports, runtime, place, threadId })
  let listener: Listener
  try {
    await core.ready()
    listener = await listen(core, options, place.count > 1 || options.sharedPort)
  } catch (error) {
    core.close()
    throw error
  }
  return {
    core,
    port: listener.port,
    close: () =>
      keptAlive(async () => {
        const closed = listener.close()
        await core.linger(options.lingerMs)
        await core.drain(options.drainMs)
        core.close()
        await closed
      }),
  }
}
