import type { OpenPipe } from '@firebreak/core/resp'
import type { ConnectTarget, TransportKind } from './transport.ts'

/** A pipe for the proxy's own requests, over the same transports as its clients' requests. */
export function transportPipe(transports: TransportKind, target: ConnectTarget): OpenPipe {
  return (owner) => {
    let isClosed = false
    /** What is written before the connection is up; a raw transport would refuse it. */
    let early: Buffer[] | undefined = []
    const transport = transports.connect(
      target,
      {
        onData(bytes, length) {
          // A transport reads into memory that it reuses.
          if (!isClosed) owner.onData(Buffer.from(bytes.subarray(0, length)))
        },
        onDrain() {},
        onClose(error) {
          if (isClosed) return
          isClosed = true
          owner.onEnd(error)
        },
      },
      () => {
        if (isClosed) return
        for (const bytes of early ?? []) transport.write(bytes)
        early = undefined
        owner.onOpen()
      },
    )
    return {
      write(bytes) {
        if (isClosed) return
        const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
        if (early === undefined) transport.write(buffer)
        else early.push(buffer)
      },
      pause: () => transport.pause(),
      resume: () => transport.resume(),
      close() {
        if (isClosed) return
        isClosed = true
        transport.destroy()
      },
    }
  }
}
