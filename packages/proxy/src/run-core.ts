import { type Listener, listen, usesRawHandles } from './listen.ts'
import type { ResolvedProxyOptions } from './options.ts'
import { ProxyCore } from './proxy-core.ts'
import type { ThreadPlace } from './threads/thread-place.ts'
import { netTransports } from './transport/net-transport.ts'
import { rawTransports } from './transport/raw-transport.ts'
import { findMode } from './upstream/find-mode.ts'

/** A proxy within one thread. */
export interface RunningCore {
  readonly core: ProxyCore
  readonly port: number
  close(): Promise<void>
}

/** Starts a proxy within this thread; resolves once it listens. */
export async function runCore(options: ResolvedProxyOptions, place: ThreadPlace): Promise<RunningCore> {
  const transports = usesRawHandles(options) ? rawTransports! : netTransports
  const { targets, identity, connectWaitMs } = options
  const mode = options.mode === 'auto' ? await findMode(targets, identity, { transports, connectWaitMs }) : options.mode
  const core = new ProxyCore(options, mode, transports, place)
  let listener: Listener
  try {
    await core.ready()
    listener = await listen(core, options, place.count > 1)
  } catch (error) {
    core.close()
    throw error
  }
  return {
    core,
    port: listener.port,
    async close() {
      const closed = listener.close()
      await core.drain(options.drainMs)
      core.close()
      await closed
    },
  }
}
