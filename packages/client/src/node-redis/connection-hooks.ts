import { commandOfArgs } from '@firebreak/core/commands'
import {
  type CachedReply,
  type ClusterShield,
  type ConnectionFacts,
  type IsOurs,
  type KeySpace,
  type LimitTurn,
  type LoadedHandler,
  OpenState,
  pass,
  type Shield,
  type Verdict,
} from '@firebreak/shield'
import type { Membership } from '../clients/cluster-clients.ts'
import { ListRequest } from '../commands/list-request.ts'
import { visibleReply } from '../commands/visible-reply.ts'
import { listen } from './connections.ts'
import type {
  NodeRedisArgument,
  NodeRedisCommandOptions,
  NodeRedisConnection,
  NodeRedisQueue,
} from './node-redis-client.ts'
import { nodeRedisIdentity } from './node-redis-upstream.ts'
import { ReplyReader } from './reply-reader.ts'

type Words = readonly NodeRedisArgument[]

/** The type of RESP that names come as. */
const blobString = 36

/** What the connections of one protected client have in common. */
export interface ClientState {
  /** True while a load that failed goes to Redis the plain way. */
  isBypassing: boolean
  /**
   * True where node-redis keeps replies itself (`clientSideCache`). It is told of changes to what its own connection has
   * read, so it must have read all that it keeps.
   */
  readonly hasOwnCache: boolean
}

/**
 * The hooks on one connection of node-redis. Every command enters its queue by `addCommand`, in the order in which Redis
 * gets them, so that is where the gate is asked what becomes of each.
 */
export class ConnectionHooks implements ConnectionFacts {
  readonly open = new OpenState()
  readonly isPinned = false
  readonly #connection: NodeRedisConnection
  readonly #queue: NodeRedisQueue
  readonly #shield: Shield
  readonly #cluster: ClusterShield
  readonly #membership: Membership
  readonly #state: ClientState
  readonly #isAlone: boolean
  #isEnded = false
  readonly #replies: ReplyReader
  readonly #request: ListRequest
  readonly #bareAdd: NodeRedisQueue['addCommand']
  /** The database that the handshake of a new connection selects. */
  #handshakeDatabase = 0
  #space: KeySpace | undefined
  /** The command that the gate is asked about. */
  #words: Words = []
  #options: NodeRedisCommandOptions | undefined
  /** What the last load that a command asked for will give it. */
  #loading: Promise<unknown> | undefined

  /** `isAlone`: the application's own client, which may SELECT, and no connection of a cluster or sentinel. */
  constructor(
    connection: NodeRedisConnection,
    shield: Shield,
    membership: Membership,
    state: ClientState,
    isAlone: boolean,
  ) {
    this.#connection = connection
    this.#queue = connection._getQueue()
    this.#shield = shield
    this.#cluster = membership.cluster
    this.#membership = membership
    this.#state = state
    this.#replies = new ReplyReader(connection)
    this.#request = new ListRequest(membership.cluster, this, () => this.#whenLoaded())
    this.#bareAdd = this.#queue.addCommand
    const { database = 0 } = connection.options ?? {}
    this.#handshakeDatabase = database
    this.#isAlone = isAlone
    if (isAlone && connection.isReady === true) void this.#askDatabase(database)
    else this.#enter(database)
  }

  /** Puts the hook in place; the returned function takes it away again. */
  install(): () => void {
    const queue = this.#queue
    const connection = this.#connection
    const bareAdd: NodeRedisQueue['addCommand'] = (args, options) => this.#bareAdd.call(queue, args, options)
    const addCommand: NodeRedisQueue['addCommand'] = (args, options) => {
      if (!this.#cluster.isActive || this.#state.isBypassing || this.#isEnded) return bareAdd(args, options)
      return this.#ask(args, options, bareAdd)
    }
    const onLost = () => {
      this.open.reset()
      this.#handshakeDatabase = 0
    }
    const onReady = () => this.#enter(this.#handshakeDatabase)
    queue.addCommand = addCommand
    const stops = [listen(connection, 'reconnecting', onLost), listen(connection, 'ready', onReady)]
    return () => {
      this.#isEnded = true
      // Somebody may have wrapped ours since: theirs stays, and ours passes everything through.
      if (queue.addCommand === addCommand) delete (queue as Partial<NodeRedisQueue>).addCommand
      for (const stop of stops) stop()
      this.open.reset()
    }
  }

  get space(): KeySpace | undefined {
    return this.#space
  }

  get isReady(): boolean {
    const { isReady, isOpen, isPubSubActive } = this.#connection
    const { isBypassing, hasOwnCache } = this.#state
    return isReady === true && isOpen && isPubSubActive !== true && !isBypassing && !hasOwnCache
  }

  now(): number {
    return this.#cluster.now()
  }

  select(database: number): void {
    if (this.#request.isHandshake) this.#handshakeDatabase = database
    else this.#enter(database)
  }

  /** Does with a command what the gate says; `send` is for one that goes to Redis. */
  #ask(
    args: Words,
    options: NodeRedisCommandOptions | undefined,
    send: NodeRedisQueue['addCommand'],
    turn?: LimitTurn,
  ): Promise<unknown> {
    const verdict = this.#verdict(args, options, turn)
    switch (verdict.kind) {
      case 'pass':
        return send(args, options)
      case 'guarded': {
        const sent = send(args, options)
        // Our reaction is the first, so it runs before the application learns of the answer.
        sent.then(verdict.end, verdict.end)
        return sent
      }
      case 'rewrite':
        return this.#visible(args, options, send, verdict.isOurs)
      case 'answer':
        return Promise.resolve(this.#give(this.#request.row.name, verdict.reply, options))
      case 'refuse':
        return Promise.reject(verdict.error)
      case 'loading':
        return this.#loading!
      case 'hold': {
        const goOn = (became: LimitTurn) => this.#ask(args, options, this.sendPlainly, became)
        return verdict.until.then(
          () => goOn('paid'),
          // One that was aborted fails as every aborted command of the library does.
          (error) => (options?.abortSignal?.aborted ? this.sendPlainly(args, options) : goOn(error)),
        )
      }
    }
  }

  /** The reply without the names that are ours. They are asked for as bytes, which text may not show. */
  async #visible(
    args: Words,
    options: NodeRedisCommandOptions | undefined,
    send: NodeRedisQueue['addCommand'],
    isOurs: IsOurs,
  ): Promise<unknown> {
    const typeMapping = { ...options?.typeMapping, [blobString]: Buffer }
    const reply = await send(args, { ...options, typeMapping })
    const visible = await visibleReply(reply, isOurs, (words) => this.sendPlainly([...words], { typeMapping }))
    return options?.typeMapping?.[blobString] === Buffer ? visible : asText(visible)
  }

  #verdict(args: Words, options: NodeRedisCommandOptions | undefined, turn: LimitTurn | undefined): Verdict {
    const request = this.#request
    this.#words = args
    this.#options = options
    try {
      const row = commandOfArgs(request.args.set(args))
      if (row === undefined) return pass
      request.set(row, args)
      request.turn = turn
      request.canWait = options?.chainId === undefined
      request.signal = options?.abortSignal
      // A command that may be aborted is node-redis' own to answer.
      request.isAnswerable = request.signal === undefined
      request.isHandshake = options?.asap === true
      return this.#cluster.gate.ask(request, this)
    } catch (error) {
      return this.#shield.passAfter(error)
    }
  }

  /** Sends a command as the bare client would, hot or not. */
  readonly sendPlainly: NodeRedisQueue['addCommand'] = (args, options) => {
    const sendCommand = this.#connection.sendCommand as (...words: unknown[]) => Promise<unknown>
    return plainly(this.#state, () => sendCommand.call(this.#connection, args, options))
  }

  #whenLoaded(): LoadedHandler {
    const args = this.#words
    const options = this.#options
    const { name } = this.#request.row
    let settle!: (value: unknown) => void
    this.#loading = new Promise((resolve) => {
      settle = resolve
    })
    return (reply) => settle(reply === undefined ? this.sendPlainly(args, options) : this.#give(name, reply, options))
  }

  #give(name: string, reply: CachedReply, options: NodeRedisCommandOptions | undefined): unknown {
    return this.#replies.read(name, reply.bytes, options?.typeMapping)
  }

  #enter(database: number): void {
    const identity = nodeRedisIdentity(this.#connection, this.#isAlone)
    this.#space = Number.isSafeInteger(database) ? this.#membership.space(identity, database) : undefined
  }

  /** A connection that stands already may have selected another database, and only the server knows which. */
  async #askDatabase(configured: number): Promise<void> {
    const reply = await this.sendPlainly(['CLIENT', 'INFO'], {}).catch(() => '')
    // A SELECT meanwhile is newer than this answer.
    if (this.#space === undefined) this.#enter(Number(/ db=(\d+)/.exec(String(reply))?.[1] ?? configured))
  }
}

/** A reply in bytes as text. */
function asText(reply: unknown): unknown {
  if (Array.isArray(reply)) return reply.map(asText)
  return reply instanceof Buffer ? reply.toString() : reply
}

/** Calls what sends commands that go to Redis, hot or not. */
function plainly<Value>(state: ClientState, send: () => Value): Value {
  const before = state.isBypassing
  state.isBypassing = true
  try {
    return send()
  } finally {
    state.isBypassing = before
  }
}
