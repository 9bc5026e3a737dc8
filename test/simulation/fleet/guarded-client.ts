import { commandOfArgs, ListArgs } from '@firebreak/core/commands'
import { ReplyDecoder, type RespValue } from '@firebreak/core/resp'
import {
  type CachedReply,
  type ClusterShield,
  type ConnectionFacts,
  type KeySpace,
  type LimitTurn,
  type LoadedReader,
  OpenState,
  type Shield,
  type Verdict,
} from '@firebreak/shield'
import type { SimulatedRedis } from '@firebreak/testkit'
import { ListRequest } from '../../../packages/client/src/commands/list-request.ts'

/** The result of a client: a reply, and whether memory had it. */
export interface ClientReply {
  readonly value: unknown
  /** The source of the value. */
  readonly by: 'redis' | 'memory' | 'load'
}

/**
 * A protected client: the smallest adapter that asks the real gate before every command and does what it says, over a bare
 * client of the simulation. The libraries' hooks do the same; they are left to real servers.
 */
export class GuardedClient implements ConnectionFacts {
  readonly open = new OpenState()
  readonly isPinned = false
  readonly bare: SimulatedRedis
  readonly #cluster: ClusterShield
  readonly #shield: Shield
  readonly #request: ListRequest
  #whenLoaded: LoadedReader = () => {}
  /** How long a call waited for the shield before it went to Redis or was answered. */
  onHeld: (heldMs: number, key: string) => void = () => {}
  /** A limit let a call through, or did not. */
  onLimit: (key: string, isAdmitted: boolean) => void = () => {}

  constructor(bare: SimulatedRedis, shield: Shield, cluster: ClusterShield) {
    this.bare = bare
    this.#shield = shield
    this.#cluster = cluster
    this.#request = new ListRequest(cluster, this, () => this.#whenLoaded)
    bare.onReconnect(() => this.open.reset())
  }

  get space(): KeySpace {
    return this.#cluster.space(0)
  }

  get isReady(): boolean {
    return this.bare.isConnected
  }

  now(): number {
    return this.#cluster.now()
  }

  select(): () => void {
    // There is only database 0 here.
    return () => {}
  }

  send(...words: [string, ...string[]]): Promise<ClientReply> {
    return this.#send(words, true)
  }

  /** As in the midst of a pipeline: others wait behind it, so it is answered from memory at once or sent. */
  sendPiped(...words: [string, ...string[]]): Promise<ClientReply> {
    return this.#send(words, false)
  }

  #send(words: [string, ...string[]], canWait: boolean): Promise<ClientReply> {
    if (!this.#cluster.isActive) return this.#plain(words)
    this.#request.canWait = canWait
    return new Promise((resolve, reject) => this.#ask(words, undefined, resolve, reject))
  }

  #ask(
    words: [string, ...string[]],
    turn: LimitTurn | undefined,
    resolve: (reply: ClientReply | Promise<ClientReply>) => void,
    reject: (error: unknown) => void,
  ): void {
    const askedAt = this.now()
    const held = (): void => this.onHeld(this.now() - askedAt, words[1]!)
    this.#whenLoaded = (reply, answered) => {
      held()
      resolve(reply === undefined ? this.#plain(words).finally(answered) : { value: decode(reply), by: 'load' })
    }
    const verdict = this.#verdict(words, turn)
    const hot = this.space.hot.get(words[1]!)
    if (hot?.limit !== undefined) this.onLimit(words[1]!, verdict.kind !== 'refuse')
    switch (verdict.kind) {
      case 'pass':
      case 'rewrite':
        resolve(this.#plain(words))
        return
      case 'loading':
        return
      case 'answer':
        resolve({ value: decode(verdict.reply), by: 'memory' })
        return
      case 'refuse':
        reject(verdict.error)
        return
      case 'hold': {
        this.open.holdBack(verdict.until, (became) => this.#ask(words, became, resolve, reject))
        return
      }
      case 'guarded':
        // Before the application learns of it.
        resolve(this.#plain(words).finally(verdict.end))
        return
    }
  }

  #verdict(words: readonly string[], turn: LimitTurn | undefined): Verdict {
    const row = commandOfArgs(new ListArgs(words))
    if (row === undefined) return { kind: 'pass' }
    this.#request.set(row, words)
    this.#request.turn = turn
    try {
      return this.#cluster.gate.ask(this.#request, this)
    } catch (error) {
      return this.#shield.passAfter(error)
    }
  }

  async #plain(words: [string, ...string[]]): Promise<ClientReply> {
    return { value: await this.bare.send(words), by: 'redis' }
  }
}

/** A reply's bytes as the bare client gives them. */
function decode({ bytes }: CachedReply): RespValue {
  const decoder = new ReplyDecoder({ bulk: 'text' })
  decoder.feed(bytes)
  return decoder.next()!
}
