import type { Runtime, Timers } from '@firebreak/core'
import type { BytePipe, OpenPipe } from '@firebreak/core/resp'
import type { Trouble } from './trouble.ts'

/**
 * Every timer and socket callback of the shield ends here. An error that left one of them would be an uncaught
 * exception of the application, whose Redis needs none of this; here it is counted and reported once, and the
 * application's calls pass through.
 */
export function guardRuntime(runtime: Runtime, trouble: Trouble): Runtime {
  const { timers } = runtime
  const guarded: Timers = {
    setTimeout: (run, ms) => timers.setTimeout(trouble.guarded(run), ms),
    setInterval: (run, ms) => timers.setInterval(trouble.guarded(run), ms),
    setImmediate: (run) => timers.setImmediate(trouble.guarded(run)),
  }
  return { ...runtime, timers: guarded }
}

/**
 * Like `guardRuntime`, for a connection to Redis. After an error nobody knows how far its bytes were read, so it is
 * closed and its owner notified: a watcher then drops what it guarded, and reconnects.
 */
export function guardPipe(open: OpenPipe, trouble: Trouble): OpenPipe {
  return (owner) => {
    const onEnd = trouble.guarded((error: Error | undefined) => owner.onEnd(error))
    const pipe: BytePipe = open({
      onOpen: trouble.guarded(() => owner.onOpen()),
      onData(chunk) {
        try {
          owner.onData(chunk)
        } catch (error) {
          trouble.failed(error)
          pipe.close()
          onEnd(error as Error)
        }
      },
      onEnd,
    })
    return pipe
  }
}
