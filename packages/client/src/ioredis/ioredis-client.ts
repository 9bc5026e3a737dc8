/** An ioredis command as its send path sees it. */
export interface IoredisCommand {
  readonly name: string
  readonly args: (string | Buffer)[]
  readonly promise: Promise<unknown>
  readonly replyEncoding: BufferEncoding | null | undefined
  /** Set once it has been written: seeing it again means a resend. */
  readonly isTraced?: boolean
  resolve: (value: unknown) => unknown
  reject: (error: unknown) => unknown
  /** Rejects it after this many milliseconds, for `commandTimeout`; not in every version. */
  setTimeout?(ms: number): void
  /** Only version 6 has it. */
  setReplyContext?(context: { protocol: 2 | 3; replyMapping: 'legacy' | 'resp3' }): void
}

/** Makes commands; every command has it as its constructor. */
export type IoredisCommandClass = new (
  name: string,
  args: readonly (string | Buffer)[],
  options: { readonly replyEncoding: null },
) => IoredisCommand

/** A connection's socket, as far as we write to it. */
export interface WritableSocket {
  write(data: string | Buffer): unknown
}

/** Where a pipeline collects its commands; it counts writes, so every command must be written once. */
export interface PipelineStream {
  readonly isPipeline?: boolean
  readonly destination?: { readonly redis?: IoredisClient }
  write(data: string | Buffer): unknown
}

/** The part of an ioredis 5 or 6 client, standalone or cluster, that the hooks use. */
export interface IoredisClient {
  readonly isCluster?: boolean
  readonly status: string
  readonly options: IoredisOptions
  readonly condition?: { readonly select?: number; readonly subscriber?: unknown } | undefined
  /** True once the application has asked to close the connection. */
  readonly manuallyClosing?: boolean
  readonly stream?: (WritableSocket & { readonly remoteAddress?: string; readonly remotePort?: number }) | null
  /** Of a cluster: the nodes of each slot, the master first. */
  readonly slots?: readonly (readonly string[] | undefined)[]
  readonly startupNodes?: readonly unknown[]
  /** Of a cluster: the connections to its nodes. */
  nodes?(role: 'all'): readonly IoredisClient[]
  sendCommand(command: IoredisCommand, stream?: PipelineStream, node?: unknown): unknown
  get(...args: unknown[]): Promise<string | null>
  getBuffer(...args: unknown[]): Promise<Buffer | null>
  /** What a trace says about a command; since 5.10. */
  _buildCommandContext?(command: IoredisCommand): object
  refreshSlotsCache?(callback?: () => void): void
  natMapper?(node: string): { host: string; port: number }
  on(event: string, listener: (...args: never[]) => void): unknown
  off(event: string, listener: (...args: never[]) => void): unknown
}

/** The options that matter here; a cluster has those of its nodes in `redisOptions`. */
export interface IoredisOptions {
  readonly host?: string
  readonly port?: number
  readonly path?: string
  readonly family?: number
  readonly db?: number
  readonly username?: string | null
  readonly password?: string | null
  readonly tls?: object | boolean
  readonly sentinels?: readonly { readonly host?: string; readonly port?: number }[] | null
  readonly name?: string | null
  readonly role?: 'master' | 'slave'
  readonly enableTLSForSentinelMode?: boolean
  readonly Connector?: unknown
  readonly keyPrefix?: string | Buffer
  readonly protocol?: 2 | 3
  readonly replyMapping?: 'legacy' | 'resp3'
  readonly stringNumbers?: boolean
  readonly commandTimeout?: number
  readonly redisOptions?: IoredisOptions
}

/** A command in a pipeline can be answered here only while the pipeline's own connection can be written to. */
export function isAnswerable(stream: PipelineStream | undefined): boolean {
  return stream === undefined || (stream.isPipeline === true && stream.destination?.redis?.status === 'ready')
}
