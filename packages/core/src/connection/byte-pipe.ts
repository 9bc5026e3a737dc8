/** A pipe owner's callbacks; never called before `OpenPipe` has returned, nor after `onEnd`. */
export interface PipeOwner {
  /** Connected (with TLS: the certificate was accepted). Anything written earlier was held back until now. */
  onOpen(): void
  /** Bytes arrived. Nothing overwrites their memory later, so views of it stay valid. */
  onData(chunk: Uint8Array): void
  /** The pipe is gone; called once, with the error that ended it, or undefined if the other side closed it. */
  onEnd(error: Error | undefined): void
}

/** A stream of bytes to a server: a socket, or a simulation's substitute for one. */
export interface BytePipe {
  /** Queues bytes to be sent in order; once the pipe is gone they are dropped. */
  write(bytes: Uint8Array): void
  /** Stops reading, so that the other side has to wait. */
  pause(): void
  resume(): void
  /** Closes at once, without calling the owner. */
  close(): void
}

/** Opens a pipe to one server. `nodePipe` of `@firebreak/core/node` opens one over TCP, TLS or a Unix socket. */
export type OpenPipe = (owner: PipeOwner) => BytePipe
