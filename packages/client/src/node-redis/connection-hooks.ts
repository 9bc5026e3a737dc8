import { type CommandRow, commandOfArgs } from '@firebreak/core/commands'
import {
  type CachedReply,
  type ClusterShield,
  CombineOwner,
  type CombinePart,
  Combining,
  type ConnectionFacts,
  type CounterCommand,
  type IsOurs,
  isRead,
  type KeySpace,
  type LimitTurn,
  type LoadedReader,
  OpenState,
  pass,
  type Shield,
  type Verdict,
} from '@firebreak/shield'
import type { Membership } from '../clients/cluster-clients.ts'
import { ListRequest } from '../commands/list-request.ts'
import { visibleReply } from '../commands/visible-reply.ts'
import { NodeRedisWay, nodeRedisPart } from './combine-commands.ts'
import { listen } from './connections.ts'
import type {
  ClusterRoutes,
  NodeRedisArgument,
  NodeRedisClient,
  NodeRedisCommandOptions,
  NodeRedisConnection,
  NodeRedisQueue,
} from './node-redis-client.ts'
import { nodeRedisIdentity } from './node-redis-upstream.ts'
import { ReplyReader } from './reply-reader.ts'

type Words = readonly NodeRedisArgument[]

/** The RESP type of names. */
const blobString = 36

/** What the connections of one protected client have in common. */
export interface ClientState {
  readonly client: NodeRedisClient
  /** True while a failed load goes to Redis the normal way. */
  isBypassing: boolean
  /**
   * True if node-redis caches replies itself (`clientSideCache`). It is notified of changes to what its own connection
   * has read, so it must have read everything that it caches.
   */
  readonly hasOwnCache: boolean
  /** How a cluster finds the connection of a key. */
  readonly routes?: ClusterRoutes | undefined
}

/**
 * The hooks on one node-redis connection. Every command enters its queue through `addCommand`, in the order in which
 * Redis gets them, so this is where the gate decides about each.
 */
export class ConnectionHooks implements ConnectionFacts {
  readonly open = new OpenState()
  readonly isPinned = false
  readonly owner = new CombineOwner()
  #combining: Combining | undefined
  readonly #connection: NodeRedisConnection
  readonly #queue: NodeRedisQueue
  readonly #shield: Shield
  readonly #cluster: ClusterShield
  readonly #membership: Membership
  readonly #state: ClientState
  #isEnded = false
  readonly #replies: ReplyReader
  readonly #request: ListRequest
  readonly #bareAdd: NodeRedisQueue['addCommand']
  /** The database selected by the handshake of a new connection. */
  #handshakeDatabase = 0
  #space: KeySpace | undefined
  /** The command that the gate is being asked about. */
  #words: Words = []
  #options: NodeRedisCommandOptions | undefined
  /** Called when the connection is back or gone for good, and whenever other connections may have replaced it. */
  readonly #untilSettled: (() => void)[] = []
  /** The result that the last load requested by a command, or the sum that it is part of, will give it. */
  #loading: Promise<unknown> | undefined

  /**
   * `isAlone`: the application's own client or one of its pool, which may SELECT, and not a connection of a cluster or
   * sentinel.
   */
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
    this.#request = new ListRequest(
      membership.cluster,
      this,
      () => this.#whenLoaded(),
      (command) => this.#partOf(command),
    )
    this.#bareAdd = this.#queue.addCommand
    const { database = 0 } = connection.options ?? {}
    this.#handshakeDatabase = database
    if (isAlone && connection.isReady === true)
      this.#askDatabase(database).catch((error) => this.#shield.trouble.failed(error))
    else this.#enter(database)
  }

  /** Installs the hook; the returned function removes it. */
  install(): () => void {
    const queue = this.#queue
    const connection = this.#connection
    const bareAdd: NodeRedisQueue['addCommand'] = (args, options) => this.#bareAdd.call(queue, args, options)
    const addCommand: NodeRedisQueue['addCommand'] = (args, options) => {
      return this.#isActive ? this.#ask(args, options, bareAdd) : bareAdd(args, options)
    }
    const { trouble } = this.#shield
    const settled = () => this.#settled()
    const onLost = trouble.guarded(() => {
      this.#combining = undefined
      this.#handshakeDatabase = 0
      this.open.reset()
      if (this.#untilSettled.length > 0) this.#state.routes?.refresh().then(settled, settled)
    })
    const onReady = () => {
      trouble.attempt(() => this.#enter(this.#handshakeDatabase))
      this.#settled()
    }
    queue.addCommand = addCommand
    const stops = [listen(connection, 'reconnecting', onLost), listen(connection, 'ready', onReady)]
    return () => {
      this.owner.waiting?.flush()
      this.#isEnded = true
      // Someone may have wrapped ours since: leave theirs, and let ours pass everything through.
      if (queue.addCommand === addCommand) delete (queue as Partial<NodeRedisQueue>).addCommand
      for (const stop of stops) stop()
      this.open.reset()
      this.#settled()
    }
  }

  get #isActive(): boolean {
    if (this.#isEnded || this.#state.isBypassing) return false
    try {
      return this.#cluster.isActive
    } catch (error) {
      this.#shield.passAfter(error)
      return true
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

  combining(): Combining {
    const { sendPlainly } = this
    this.#combining ??= new Combining(new NodeRedisWay(sendPlainly, this.#replies), () => this.now())
    return this.#combining
  }

  select(database: number): () => void {
    const { isHandshake } = this.#request
    return () => {
      if (isHandshake) this.#handshakeDatabase = database
      else this.#enter(database)
    }
  }

  /** Carries out the gate's verdict on a command; `send` is for one that goes to Redis. */
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
        // Our reaction is the first, so it runs before the application learns of the answer. The gate has guarded it.
        sent.then(verdict.end, verdict.end)
        return sent
      }
      case 'rewrite':
        return this.#visible(args, options, send, verdict.isOurs)
      case 'answer':
        try {
          return Promise.resolve(this.#give(this.#request.row.name, verdict.reply, options))
        } catch (error) {
          this.#shield.passAfter(error)
          return send(args, options)
        }
      case 'refuse':
        return Promise.reject(verdict.error)
      case 'loading':
      case 'combined':
        return this.#loading!
      case 'hold': {
        const { row } = this.#request
        const key = args[row.firstKey]
        const sendHeld: NodeRedisQueue['addCommand'] = (held, heldOptions) =>
          this.#sendHeld(held, heldOptions, key, row.access === 'read')
        const goOn = (became: LimitTurn) => this.#ask(args, options, sendHeld, became)
        return new Promise((resolve) => {
          const onTurn = (became: LimitTurn) => {
            // Fails as the library fails any aborted command.
            const isAborted = options?.abortSignal?.aborted
            resolve(isAborted ? this.#sendLate(args, options) : goOn(became))
          }
          try {
            this.open.holdBack(verdict.until, onTurn)
          } catch (error) {
            this.#shield.passAfter(error)
            resolve(this.#sendLate(args, options))
          }
        })
      }
    }
  }

  /** The reply without our names. They are requested as bytes, which text might not preserve. */
  async #visible(
    args: Words,
    options: NodeRedisCommandOptions | undefined,
    send: NodeRedisQueue['addCommand'],
    isOurs: IsOurs,
  ): Promise<unknown> {
    const typeMapping = { ...options?.typeMapping, [blobString]: Buffer }
    const reply = await send(args, { ...options, typeMapping })
    let visible = reply
    try {
      visible = await visibleReply(reply, isOurs, (words) => this.sendPlainly([...words], { typeMapping }))
    } catch (error) {
      // If that fails, the reply stays unchanged.
      this.#shield.trouble.failed(error)
    }
    return options?.typeMapping?.[blobString] === Buffer ? visible : asText(visible)
  }

  #verdict(args: Words, options: NodeRedisCommandOptions | undefined, turn: LimitTurn | undefined): Verdict {
    const request = this.#request
    let row: CommandRow | undefined
    try {
      row = commandOfArgs(request.args.set(args))
      if (row === undefined) {
        // An unknown command: it must not overtake what is waiting.
        this.owner.waiting?.flush()
        return pass
      }
      // Opening a connection changes nothing that was known.
      if (options?.asap !== true) this.open.beforeChange(row, options?.chainId !== undefined)
      this.#words = args
      this.#options = options
      request.set(row, args)
      request.turn = turn
      request.canWait = options?.chainId === undefined
      request.signal = options?.abortSignal
      // Commands that can be aborted are left to node-redis.
      request.isAnswerable = request.signal === undefined
      request.isHandshake = options?.asap === true
      return this.#cluster.gate.ask(request, this)
    } catch (error) {
      return this.#cluster.gate.passAfter(error, isRead(row), this)
    }
  }

  /** Sends a command as the bare client would, hot or not. */
  readonly sendPlainly: NodeRedisQueue['addCommand'] = (args, options) =>
    sendPlainlyOn(this.#connection, this.#state, args, options)

  /** Like `sendPlainly`, after the application's call has returned: an error rejects its promise. */
  async #sendLate(args: Words, options: NodeRedisCommandOptions | undefined): Promise<unknown> {
    return this.sendPlainly(args, options)
  }

  /**
   * Sends a command that had to wait. A failover may have closed its connection since, or be about to, and whatever is
   * in its queue then fails; without us it would have been sent in time.
   */
  async #sendHeld(
    args: Words,
    options: NodeRedisCommandOptions | undefined,
    key: NodeRedisArgument | undefined,
    isReadonly: boolean,
  ): Promise<unknown> {
    const { routes } = this.#state
    const connection = this.#connection
    while (routes !== undefined && key !== undefined && connection.isReady !== true) {
      const found = await routes.find(key, isReadonly)
      if (found !== connection) return sendPlainlyOn(found, this.#state, args, options)
      if (!connection.isOpen || this.#isEnded) break
      await new Promise<void>((resolve) => this.#untilSettled.push(resolve))
    }
    return this.sendPlainly(args, options)
  }

  #settled(): void {
    for (const goOn of this.#untilSettled.splice(0)) goOn()
  }

  #whenLoaded(): LoadedReader {
    const args = this.#words
    const options = this.#options
    const { name } = this.#request.row
    let settle!: (value: unknown) => void
    this.#loading = new Promise((resolve) => {
      settle = resolve
    })
    return (reply, answered) => {
      if (reply !== undefined) {
        settle(this.#give(name, reply, options))
        return
      }
      const sent = this.#sendLate(args, options)
      sent.then(answered, answered)
      settle(sent)
    }
  }

  #partOf(command: CounterCommand): CombinePart {
    const args = this.#words
    const options = this.#options
    const { name } = this.#request.row
    const { part, answered } = nodeRedisPart(command, this.owner, this.#replies, {
      send: () => this.sendPlainly(args, options),
      read: (bytes) => {
        try {
          return this.#replies.read(name, bytes, options?.typeMapping)
        } catch (error) {
          // It was carried out, and only this tells its caller.
          this.#shield.trouble.failed(error)
          return Number(bytes.toString('latin1', 1))
        }
      },
    })
    this.#loading = answered
    return part
  }

  #give(name: string, reply: CachedReply, options: NodeRedisCommandOptions | undefined): unknown {
    return this.#replies.read(name, reply.bytes, options?.typeMapping)
  }

  #enter(database: number): void {
    const identity = nodeRedisIdentity(this.#state.client, this.#connection)
    this.#space = Number.isSafeInteger(database) ? this.#membership.space(identity, database) : undefined
  }

  /** An existing connection may have selected another database, and only the server knows which. */
  async #askDatabase(configured: number): Promise<void> {
    const reply = await this.sendPlainly(['CLIENT', 'INFO'], {}).catch(() => '')
    // A SELECT in the meantime is newer than this answer.
    if (this.#space === undefined) this.#enter(Number(/ db=(\d+)/.exec(String(reply))?.[1] ?? configured))
  }
}

/** A reply in bytes as text. */
function asText(reply: unknown): unknown {
  if (Array.isArray(reply)) return reply.map(asText)
  return reply instanceof Buffer ? reply.toString() : reply
}

/** Sends a command that goes to Redis, hot or not. */
function sendPlainlyOn(
  connection: NodeRedisConnection,
  state: ClientState,
  args: Words,
  options: NodeRedisCommandOptions | undefined,
): Promise<unknown> {
  const before = state.isBypassing
  state.isBypassing = true
  try {
    return (connection.sendCommand as (...words: unknown[]) => Promise<unknown>).call(connection, args, options)
  } finally {
    state.isBypassing = before
  }
}
