import type { Duplex } from 'node:stream'

/** After so long without a byte the kernel asks whether the peer is still there, as Redis has it. */
export const keepAliveMs: number = 300_000

/** What a connection tells its owner. */
export interface TransportOwner {
  /** Bytes came: those of `bytes` before `length`. The memory is the owner's only until it returns. */
  onData(bytes: Buffer, length: number): void
  /** All that was written has left. */
  onDrain(): void
  /** The peer sends no more, but may still read. Without this the connection closes then. */
  onEnd?(): void
  /** The connection is gone, for whatever reason; told once. */
  onClose(error: Error | undefined): void
}

/** A byte stream to a client or to Redis, over public sockets or over raw handles. */
export interface Transport {
  /** Sends bytes. True: they have left, and their memory may be used again. */
  write(bytes: Buffer): boolean
  /** Bytes that were written and have not left. */
  readonly queuedBytes: number
  /** Stops taking bytes, so that the peer has to wait. */
  pause(): void
  resume(): void
  /** Sends no more once all that was written has left, and takes bytes until the peer closes. */
  finish(): void
  /** Closes once all that was written has left. */
  end(): void
  /** Closes at once. */
  destroy(): void
  /** The peer's address, as `127.0.0.1:6379`. */
  readonly peer: string
  /** The address that the peer is connected to. */
  readonly local: string
}

/** Makes connections of one kind. */
export interface TransportKind {
  connect(target: ConnectTarget, owner: TransportOwner, onConnect: () => void): Transport
  /** A plain stream, which keeps no process alive; `connect` or `secureConnect` tells when it stands. */
  stream(target: ConnectTarget): Duplex
}

/** Where a Redis listens. */
export interface ConnectTarget {
  readonly host: string
  readonly port: number
  /** A unix socket instead of host and port. */
  readonly path?: string | undefined
  /** TLS with these settings. */
  readonly tls?: import('node:tls').ConnectionOptions | undefined
}
