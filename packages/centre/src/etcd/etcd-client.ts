import { InvalidOptionError, type Runtime, systemRuntime, withoutCredentials } from '@firebreak/core'
import { centreDown, type DownError, messageOf } from '../errors.ts'
import { HttpClient } from '../http/http-client.ts'
import type { ClientTls } from '../tls-files.ts'

/** How to reach an etcd. */
export interface EtcdClientOptions {
  /** `http://host:port`, several separated by commas. */
  readonly endpoints: string
  /** Time limit for one request to one endpoint. @default 3000 */
  readonly requestTimeoutMs?: number
  /** `user:password`, if etcd requires it. @default none */
  readonly auth?: string
  /** For endpoints with `https:`. @default {} */
  readonly tls?: ClientTls
  /** False: connections do not keep the process alive. @default true */
  readonly keepsAlive?: boolean
  /** The error for callers when no endpoint can be reached. @default a CentreError FB_CENTRE_DOWN */
  readonly downError?: DownError
  /** @default the system's */
  readonly runtime?: Runtime
}

/** One key with the revision of its last change. */
export interface EtcdEntry {
  readonly key: string
  readonly value: string
  readonly revision: string
}

/** A message of a watch's stream. */
interface WatchMessage {
  readonly error?: { readonly message?: string }
  readonly result?: {
    readonly canceled?: boolean
    readonly cancel_reason?: string
    readonly events?: readonly { readonly type?: string; readonly kv: RawEntry }[]
  }
}

interface RawEntry {
  readonly key: string
  readonly value?: string
  readonly mod_revision: string
}

const toBase64 = (text: string) => Buffer.from(text).toString('base64')
const fromBase64 = (text: string | undefined) => Buffer.from(text ?? '', 'base64').toString()

/** An endpoint answered, but not as requested. */
class EtcdAnswerError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(`${status}: ${message}`)
    this.status = status
  }
}

/**
 * The etcd calls that worker registration and published tables need, over the JSON gateway that every etcd ≥ 3.4 has on
 * its client port: no gRPC stack, and a deadline for each request. If an endpoint does not answer, the next one is
 * tried.
 */
export class EtcdClient {
  readonly #endpoints: readonly string[]
  readonly #requestTimeoutMs: number
  readonly #http: HttpClient
  readonly #auth: { name: string; password: string } | undefined
  readonly #down: DownError
  #token: string | undefined
  /** The endpoint that answered last, which is asked first. */
  #preferred = 0

  constructor(options: EtcdClientOptions) {
    this.#endpoints = options.endpoints.split(',').map((endpoint) => endpoint.trim().replace(/\/+$/, ''))
    if (!this.#endpoints.every((endpoint) => /^https?:\/\/[^/\s]+$/.test(endpoint))) {
      throw new InvalidOptionError('endpoints', options.endpoints, 'http://host:port, several separated by commas')
    }
    this.#requestTimeoutMs = options.requestTimeoutMs ?? 3000
    const { tls, keepsAlive, runtime = systemRuntime } = options
    this.#http = new HttpClient({ timers: runtime.timers, tls, keepsAlive })
    this.#down = options.downError ?? centreDown
    const [name, ...password] = options.auth?.split(':') ?? []
    this.#auth = name === undefined ? undefined : { name, password: password.join(':') }
  }

  /** Every key that starts with `prefix`. */
  async list(prefix: string): Promise<EtcdEntry[]> {
    // The range's end is the first key after all of the prefix: its last byte plus one.
    const end = prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1)
    const answer = await this.#post('kv/range', { key: toBase64(prefix), range_end: toBase64(end) })
    return ((answer['kvs'] ?? []) as RawEntry[]).map(toEntry)
  }

  async get(key: string): Promise<EtcdEntry | undefined> {
    const answer = await this.#post('kv/range', { key: toBase64(key) })
    return ((answer['kvs'] ?? []) as RawEntry[]).map(toEntry)[0]
  }

  /** A key, and the revision of all of etcd at which it was read. */
  async read(key: string): Promise<{ readonly entry: EtcdEntry | undefined; readonly revision: bigint }> {
    const answer = await this.#post('kv/range', { key: toBase64(key) })
    const { revision } = answer['header'] as { revision: string }
    return { entry: ((answer['kvs'] ?? []) as RawEntry[]).map(toEntry)[0], revision: BigInt(revision) }
  }

  /**
   * Reports each change of a key from `revision` on, undefined if it was deleted; resolves after `forMs` or when etcd
   * ends it, rejects if it cannot be followed.
   */
  async watch(
    key: string,
    revision: bigint,
    { forMs, signal }: { readonly forMs: number; readonly signal: AbortSignal },
    onChange: (value: string | undefined) => void,
  ): Promise<void> {
    const create = { create_request: { key: toBase64(key), start_revision: String(revision) } }
    await this.#onSome('watch', async (endpoint) => {
      const question = {
        method: 'POST',
        body: JSON.stringify(create),
        headers: this.#headers(),
        timeoutMs: forMs,
        signal,
      } as const
      let refusal: string | undefined
      const { status } = await this.#http.lines(`${endpoint}/v3/watch`, question, (line) => {
        const { result, error } = JSON.parse(line) as WatchMessage
        if (error !== undefined || result?.canceled) refusal = error?.message ?? result?.cancel_reason ?? 'canceled'
        for (const { type, kv } of result?.events ?? []) onChange(type === 'DELETE' ? undefined : fromBase64(kv.value))
        if (refusal !== undefined) throw new Error(refusal)
      })
      if (status !== 200) throw new EtcdAnswerError(status, refusal ?? 'the watch was refused')
    })
  }

  async put(key: string, value: string): Promise<void> {
    await this.#post('kv/put', { key: toBase64(key), value: toBase64(value) })
  }

  /** Writes the key if its last change is `revision` ('0' for a missing key); false if it is not. */
  async putIf(key: string, value: string, revision: string, lease?: string): Promise<boolean> {
    const put = { key: toBase64(key), value: toBase64(value), ...(lease === undefined ? {} : { lease }) }
    return this.#transact(key, revision, { request_put: put })
  }

  async deleteIf(key: string, revision: string): Promise<boolean> {
    return this.#transact(key, revision, { request_delete_range: { key: toBase64(key) } })
  }

  /** A lease of at least this long; the server may round up. */
  async grantLease(ttlMs: number): Promise<string> {
    const answer = await this.#post('lease/grant', { TTL: Math.max(1, Math.ceil(ttlMs / 1000)) })
    return String(answer['ID'])
  }

  /** Renews a lease; false if it has expired. */
  async keepAlive(lease: string): Promise<boolean> {
    const answer = await this.#post('lease/keepalive', { ID: lease })
    return Number((answer['result'] as { TTL?: string } | undefined)?.TTL ?? 0) > 0
  }

  /** Ends a lease and the keys attached to it. */
  async revokeLease(lease: string): Promise<void> {
    await this.#post('lease/revoke', { ID: lease })
  }

  close(): void {
    this.#http.close()
  }

  async #transact(key: string, revision: string, operation: object): Promise<boolean> {
    const compare = [{ key: toBase64(key), target: 'MOD', result: 'EQUAL', mod_revision: revision }]
    const answer = await this.#post('kv/txn', { compare, success: [operation] })
    return answer['succeeded'] === true
  }

  #post(path: string, body: object): Promise<Record<string, unknown>> {
    return this.#onSome(path, async (endpoint) => {
      const { status, text } = await this.#http.ask(`${endpoint}/v3/${path}`, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: this.#headers(),
        timeoutMs: this.#requestTimeoutMs,
      })
      return parseAnswer(status, text)
    })
  }

  /** Asks the endpoints one by one until one answers; an expired token is renewed once. */
  async #onSome<T>(path: string, ask: (endpoint: string) => Promise<T>): Promise<T> {
    let lastError: unknown
    for (let tried = 0; tried < this.#endpoints.length; tried++) {
      const endpoint = this.#endpoints[this.#preferred]!
      try {
        const wasKnown = this.#token !== undefined
        await this.#signIn(endpoint)
        try {
          return await ask(endpoint)
        } catch (error) {
          if (!wasKnown || (error as EtcdAnswerError).status !== 401) throw error
          this.#token = undefined
          await this.#signIn(endpoint)
          return await ask(endpoint)
        }
      } catch (error) {
        // Tokens expire: the next call requests a new one.
        this.#token = undefined
        lastError = error
        this.#preferred = (this.#preferred + 1) % this.#endpoints.length
      }
    }
    throw this.#down(
      `etcd: ${path} failed on ${withoutCredentials(this.#endpoints.join(', '))} (${messageOf(lastError)})`,
      lastError,
    )
  }

  async #signIn(endpoint: string): Promise<void> {
    if (this.#auth === undefined || this.#token !== undefined) return
    const { status, text } = await this.#http.ask(`${endpoint}/v3/auth/authenticate`, {
      method: 'POST',
      body: JSON.stringify(this.#auth),
      headers: this.#headers(),
      timeoutMs: this.#requestTimeoutMs,
    })
    this.#token = String(parseAnswer(status, text)['token'])
  }

  #headers(): Record<string, string> {
    const known = this.#token === undefined ? {} : { authorization: this.#token }
    return { 'content-type': 'application/json', ...known }
  }
}

function parseAnswer(status: number, text: string): Record<string, unknown> {
  let answer: Record<string, unknown>
  try {
    answer = JSON.parse(text) as Record<string, unknown>
  } catch {
    throw new EtcdAnswerError(status, 'the answer is not JSON')
  }
  if (status < 200 || status > 299) throw new EtcdAnswerError(status, String(answer['error'] ?? answer['message']))
  return answer
}

function toEntry(raw: RawEntry): EtcdEntry {
  return { key: fromBase64(raw.key), value: fromBase64(raw.value), revision: raw.mod_revision }
}
