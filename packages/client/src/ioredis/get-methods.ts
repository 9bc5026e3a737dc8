import {
  type CachedReply,
  getCommand,
  type HotKey,
  type LoadedHandler,
  nextReplyForm,
  type Shield,
} from '@firebreak/shield'
import { onHotKeys } from '../clients/on-hot-keys.ts'
import { isOwnMethod } from '../clients/own-method.ts'
import { nameOf } from '../commands/command-keys.ts'
import { bufferOfBulk, textOfBulk } from '../replies/bulk.ts'
import { replyText } from '../replies/reply-text.ts'
import type { IoredisClient } from './ioredis-client.ts'
import type { IoredisConnection } from './ioredis-connection.ts'
import { isTraced } from './trace-command.ts'

/** The promise of a GET's text, kept with the reply: every hit returns the same one. */
const textPromiseForm = nextReplyForm()
const getId = 'GET'

/**
 * The methods `get` and `getBuffer` of one client. They read nearly every hot key, so they answer before ioredis has
 * built its command object (`bench/client.ts` has figures for both paths).
 */
export class GetMethods {
  readonly #connection: IoredisConnection
  readonly #shield: Shield
  readonly #prefix: string | undefined
  readonly #bareGet: IoredisClient['get']
  readonly #bareGetBuffer: IoredisClient['getBuffer']

  constructor(connection: IoredisConnection, shield: Shield) {
    const { client } = connection
    this.#connection = connection
    this.#shield = shield
    const { keyPrefix = '' } = client.options
    // ioredis applies a prefix in bytes itself; such a client is left to the send path.
    this.#prefix = typeof keyPrefix === 'string' ? keyPrefix : undefined
    this.#bareGet = client.get
    this.#bareGetBuffer = client.getBuffer
  }

  /** Installs the methods while something is hot; the returned function removes them for good. */
  install(): () => void {
    const { client, cluster } = this.#connection
    const get = this.#bareGet
    const getBuffer = this.#bareGetBuffer
    const hotGet = (...args: unknown[]): Promise<string | null> => {
      try {
        const hot = args.length === 1 ? this.#hotKey(args[0]) : undefined
        const answered = hot && this.#getText(hot, args[0])
        if (answered !== undefined) return answered
      } catch (error) {
        this.#shield.passAfter(error)
      }
      return get.apply(client, args)
    }
    const hotGetBuffer = (...args: unknown[]): Promise<Buffer | null> => {
      try {
        const hot = args.length === 1 ? this.#hotKey(args[0]) : undefined
        const answered = hot && this.#getBuffer(hot, args[0])
        if (answered !== undefined) return answered
      } catch (error) {
        this.#shield.passAfter(error)
      }
      return getBuffer.apply(client, args)
    }
    const ends = [this.#swap('get', get, hotGet), this.#swap('getBuffer', getBuffer, hotGetBuffer)]
    const setMethods = () => {
      for (const { set } of ends) set(cluster.hasHotKeys)
    }
    const stopListening = onHotKeys(cluster, client, setMethods)
    setMethods()
    return () => {
      stopListening()
      for (const { remove } of ends) remove()
    }
  }

  /** While nothing is hot, a method is ioredis' own: a cold GET only pays for the send path. */
  #swap(name: 'get' | 'getBuffer', bare: unknown, hot: unknown): { set(isHot: boolean): void; remove(): void } {
    const { client } = this.#connection
    if (!isOwnMethod(client, name)) return { set() {}, remove() {} }
    return {
      set(isHot) {
        // Someone may have wrapped it since: leave theirs.
        if (client[name] === bare || client[name] === hot) Object.assign(client, { [name]: isHot ? hot : bare })
      },
      remove() {
        if (client[name] === bare || client[name] === hot) delete (client as Partial<IoredisClient>)[name]
      },
    }
  }

  /** The value of a hot string key if it is currently in memory; undefined means that a normal read is needed. */
  peek(key: string): string | null | undefined {
    const hot = this.#hotKey(key)
    if (hot === undefined) return undefined
    const { cluster } = this.#connection
    const reply = hot.hit(getId, cluster.now())
    if (reply === undefined) return undefined
    cluster.count(hot.name, false, reply.bytes.length)
    return replyText(reply)
  }

  /** The hot key that a method was called with, if reads of it may be answered here. */
  #hotKey(key: unknown): HotKey | undefined {
    const connection = this.#connection
    if (!connection.isActive || isTraced() || typeof key !== 'string' || this.#prefix === undefined) return undefined
    const found = connection.space.hot.get(nameOf(this.#prefix === '' ? key : this.#prefix + key))
    if (found === undefined || found.isGated) return undefined
    return connection.cluster.gate.mayServe(found, connection) ? found : undefined
  }

  #getText(hot: HotKey, key: unknown): Promise<string | null> | undefined {
    const { cluster, client } = this.#connection
    const now = cluster.now()
    const reply = hot.hit(getId, now)
    if (reply === undefined) {
      const bare = () => this.#bareGet.call(client, key)
      return this.#load(hot, now, bare, (loaded) => textOfBulk(loaded.bytes))
    }
    cluster.count(hot.name, false, reply.bytes.length)
    const known = reply.forms[textPromiseForm]
    if (known !== undefined) return known as Promise<string | null>
    const promise = Promise.resolve(replyText(reply) as string | null)
    reply.forms[textPromiseForm] = promise
    return promise
  }

  #getBuffer(hot: HotKey, key: unknown): Promise<Buffer | null> | undefined {
    const { cluster, client } = this.#connection
    const now = cluster.now()
    const reply = hot.hit(getId, now)
    if (reply === undefined) {
      const bare = () => this.#bareGetBuffer.call(client, key)
      return this.#load(hot, now, bare, (loaded) => bufferOfBulk(loaded.bytes))
    }
    cluster.count(hot.name, false, reply.bytes.length)
    return Promise.resolve(bufferOfBulk(reply.bytes) as Buffer | null)
  }

  /** Reads through the watcher; what that cannot read takes the normal path, where it is counted. */
  #load<Value>(
    hot: HotKey,
    now: number,
    bare: () => Promise<Value>,
    decode: (reply: CachedReply) => Value | undefined,
  ): Promise<Value> | undefined {
    let settle!: (value: Value | Promise<Value>) => void
    const begin = (handler: LoadedHandler) => hot.load(getCommand(hot), now, handler)
    const isLoading = this.#connection.open.load(begin, (reply) => {
      let value: Value | undefined
      this.#shield.trouble.attempt(() => {
        value = reply === undefined ? undefined : decode(reply)
        if (value !== undefined) this.#connection.cluster.count(hot.name, false, reply!.bytes.length)
      })
      // A key that does not exist is null.
      settle(value === undefined ? this.#plainly(bare) : value)
    })
    if (!isLoading) return undefined
    return new Promise((resolve) => {
      settle = resolve
    })
  }

  /** Reads the normal way after the application's call has returned: an error rejects its promise. */
  #plainly<Value>(bare: () => Promise<Value>): Promise<Value> {
    return new Promise((resolve) => resolve(this.#connection.plainly(bare)))
  }
}
