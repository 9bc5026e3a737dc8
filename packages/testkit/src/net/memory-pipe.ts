import type { OpenPipe, PipeOwner } from '@firebreak/core/resp'

/** A pipe in memory whose other end is the test. */
export interface MemoryPipe {
  /** Opens it; a second call makes a new connection, and the test uses that one from then on. */
  readonly open: OpenPipe
  /** What was written to the newest connection, as Latin-1. */
  readonly written: string
  readonly isClosed: boolean
  readonly isPaused: boolean
  /** How often it was opened. */
  readonly opened: number
  /** Tells the owner that it is connected. */
  accept(): void
  /** Sends bytes to the owner; text as UTF-8. */
  say(bytes: string | Uint8Array): void
  /** Ends it from the other side. */
  end(error?: Error): void
}

/** Makes a pipe in memory. */
export function memoryPipe(): MemoryPipe {
  let owner: PipeOwner | undefined
  let written: Buffer[] = []
  let [isClosed, isPaused, opened] = [false, false, 0]
  return {
    open(newOwner) {
      const own = newOwner
      owner = own
      written = []
      isClosed = isPaused = false
      opened++
      const ifCurrent = (act: () => void) => () => {
        if (owner === own) act()
      }
      return {
        write: (bytes) => {
          if (owner === own && !isClosed) written.push(Buffer.from(bytes))
        },
        pause: ifCurrent(() => {
          isPaused = true
        }),
        resume: ifCurrent(() => {
          isPaused = false
        }),
        close: ifCurrent(() => {
          isClosed = true
        }),
      }
    },
    get written() {
      return Buffer.concat(written).toString('latin1')
    },
    get isClosed() {
      return isClosed
    },
    get isPaused() {
      return isPaused
    },
    get opened() {
      return opened
    },
    accept() {
      if (!isClosed) owner?.onOpen()
    },
    say(bytes) {
      if (!isClosed) owner?.onData(Buffer.from(bytes as string))
    },
    end(error) {
      if (isClosed) return
      isClosed = true
      owner?.onEnd(error)
    },
  }
}
