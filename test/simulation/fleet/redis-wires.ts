import type { OpenPipe } from '@firebreak/core/resp'
import type { PipeEnd, SimulatedProcess, VirtualNetwork } from '@firebreak/testkit'
import type { Transport, TransportKind, TransportOwner } from '../../../packages/proxy/src/transport/transport.ts'

/** A byte pipe of the shield's own to a server. */
export function simulatedPipe(process: SimulatedProcess, network: VirtualNetwork, address: string): OpenPipe {
  return (owner) => {
    const end = network.connect(process, address)
    let isClosed = false
    end.onConnect = () => isClosed || owner.onOpen()
    end.onData = (bytes) => isClosed || owner.onData(bytes)
    end.onClose = (error) => {
      if (isClosed) return
      isClosed = true
      owner.onEnd(error)
    }
    return {
      write: (bytes) => void end.write(bytes),
      pause: () => end.pause(),
      resume: () => end.resume(),
      close() {
        isClosed = true
        end.destroy()
      },
    }
  }
}

/** The proxy's connections to Redis. */
export function simulatedTransports(process: SimulatedProcess, network: VirtualNetwork): TransportKind {
  return {
    connect({ host, port }, owner, onConnect) {
      const end = network.connect(process, `${host}:${port}`)
      const transport = new PipeTransport(end, owner)
      end.onConnect = onConnect
      return transport
    },
  }
}

/** A pipe's end in the form that the proxy uses. */
export class PipeTransport implements Transport {
  readonly #end: PipeEnd

  constructor(end: PipeEnd, owner: TransportOwner) {
    this.#end = end
    end.allowsHalfOpen = owner.onEnd !== undefined
    end.onData = (bytes) => owner.onData(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), bytes.length)
    end.onDrain = () => owner.onDrain()
    end.onEnd = () => owner.onEnd?.()
    end.onClose = (error) => owner.onClose(error)
  }

  get queuedBytes(): number {
    return this.#end.queuedBytes
  }

  get peer(): string {
    return this.#end.peer
  }

  get local(): string {
    return this.#end.process.name
  }

  write(bytes: Buffer): boolean {
    return this.#end.write(bytes)
  }

  pause(): void {
    this.#end.pause()
  }

  resume(): void {
    this.#end.resume()
  }

  finish(): void {
    this.#end.end()
  }

  end(): void {
    this.#end.end()
    // The peer may never close its side.
    this.#end.destroy()
  }

  destroy(): void {
    this.#end.destroy()
  }
}
