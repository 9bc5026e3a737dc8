/** What a pipe tells whoever opened it; never before `OpenPipe` has returned, and nothing after `onEnd`. */
export interface PipeOwner {
  /** The other side is there (behind TLS: its certificate was accepted). What was written before that waited. */
  onOpen(): void
  /** Bytes came. Nobody writes to their memory afterwards, so views of it stay good. */
  onData(chunk: Uint8Array): void
  /** The pipe is gone, told once: the error that ended it, or undefined where the other side closed it. */
  onEnd(error: Error | undefined): void
}

/** A stream of bytes to a server: a socket, or what a simulation has instead. */
export interface BytePipe {
  /** Sends bytes after all others; once the pipe is gone they are dropped. */
  write(bytes: Uint8Array): void
  /** Stops taking bytes, so that the other side has to wait. */
  pause(): void
  resume(): void
  /** Closes at once, without telling the owner. */
  close(): void
}

/** Opens a pipe to one server. `nodePipe` of `@firebreak/core/node` makes one over TCP, TLS or a Unix socket. */
export type OpenPipe = (owner: PipeOwner) => BytePipe
