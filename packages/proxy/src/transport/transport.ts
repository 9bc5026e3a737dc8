/** Idle time after which the kernel checks whether the peer is still there, as in Redis. */
export const keepAliveMs: number = 300_000

/** What a connection reports to its owner. */
export interface TransportOwner {
  /** Bytes arrived: those of `bytes` before `length`. The memory is only the owner's until it returns. */
  onData(bytes: Buffer, length: number): void
  /** Everything written has been sent. */
  onDrain(): void
  /** The peer sends no more, but may still read. Without this handler the connection closes then. */
  onEnd?(): void
  /** The connection is gone, for whatever reason; called once. */
  onClose(error: Error | undefined): void
}

/** A byte stream to a client or to Redis, over public sockets or over raw handles. */
export interface Transport {
  /** Sends bytes. Returns true if they have been sent and their memory may be reused. */
  write(bytes: Buffer): boolean
  /** Bytes written but not sent yet. */
  readonly queuedBytes: number
  /** Stops reading, so that the peer has to wait. */
  pause(): void
  resume(): void
  /** Closes the sending side once everything written has been sent, and reads until the peer closes. */
  finish(): void
  /** Closes once everything written has been sent. */
  end(): void
  /** Closes at once. */
  destroy(): void
  /** The peer's address, such as `127.0.0.1:6379`. */
  readonly peer: string
  /** The address that the peer is connected to. */
  readonly local: string
}

/** Makes connections of one kind. */
export interface TransportKind {
  connect(target: ConnectTarget, owner: TransportOwner, onConnect: () => void): Transport
}

/** Where a Redis listens. */
export interface ConnectTarget {
  readonly host: string
  readonly port: number
  /** A unix socket instead of host and port. */
  readonly path?: string | undefined
  /** TLS settings; no TLS if undefined. */
  readonly tls?: import('node:tls').ConnectionOptions | undefined
}
