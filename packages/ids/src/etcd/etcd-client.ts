import { InvalidOptionError, type Runtime, systemRuntime, type Timers } from '@firebreak/core'
import { IdsError, messageOf } from '../errors.ts'
import { fetchJson } from '../time/fetch-json.ts'

/** How an etcd is reached. */
export interface EtcdClientOptions {
  /** `http://host:port`, several with commas between them. */
  readonly endpoints: string
  /** For one request to one endpoint. @default 3000 */
  readonly requestTimeoutMs?: number
  /** `user:password` where etcd asks for one. @default none */
  readonly auth?: string
  /** @default the system's */
  readonly runtime?: Runtime
}

/** One key with the revision of its last change. */
export interface EtcdEntry {
  readonly key: string
  readonly value: string
  readonly revision: string
}

interface RawEntry {
  readonly key: string
  readonly value?: string
  readonly mod_revision: string
}

const toBase64 = (text: string) => Buffer.from(text).toString('base64')
const fromBase64 = (text: string | undefined) => Buffer.from(text ?? '', 'base64').toString()

/**
 * The calls that worker registration and published tables need of etcd, over the JSON gateway that every etcd ≥ 3.4 has on its client
 * port: no gRPC stack, and a deadline on each request. The next endpoint is tried where one does not answer.
 */
export class EtcdClient {
  readonly #endpoints: readonly string[]
  readonly #requestTimeoutMs: number
  readonly #timers: Timers
  readonly #auth: { name: string; password: string } | undefined
  #token: string | undefined

  constructor(options: EtcdClientOptions) {
    this.#endpoints = options.endpoints.split(',').map((endpoint) => endpoint.trim().replace(/\/+$/, ''))
    if (!this.#endpoints.every((endpoint) => /^https?:\/\/[^/\s]+$/.test(endpoint))) {
      throw new InvalidOptionError('endpoints', options.endpoints, 'http://host:port, several with commas between them')
    }
    this.#requestTimeoutMs = options.requestTimeoutMs ?? 3000
    this.#timers = (options.runtime ?? systemRuntime).timers
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

  async put(key: string, value: string): Promise<void> {
    await this.#post('kv/put', { key: toBase64(key), value: toBase64(value) })
  }

  /** Writes the key if its last change is `revision`, '0' for a key that is not there; false where it is another. */
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

  /** Renews a lease; false where it has lapsed. */
  async keepAlive(lease: string): Promise<boolean> {
    const answer = await this.#post('lease/keepalive', { ID: lease })
    return Number((answer['result'] as { TTL?: string } | undefined)?.TTL ?? 0) > 0
  }

  /** Ends a lease and the keys that hang on it. */
  async revokeLease(lease: string): Promise<void> {
    await this.#post('lease/revoke', { ID: lease })
  }

  async #transact(key: string, revision: string, operation: object): Promise<boolean> {
    const compare = [{ key: toBase64(key), target: 'MOD', result: 'EQUAL', mod_revision: revision }]
    const answer = await this.#post('kv/txn', { compare, success: [operation] })
    return answer['succeeded'] === true
  }

  async #post(path: string, body: object): Promise<Record<string, unknown>> {
    let lastError: unknown
    for (const endpoint of this.#endpoints) {
      try {
        if (this.#auth !== undefined && this.#token === undefined) {
          this.#token = String((await this.#postTo(endpoint, 'auth/authenticate', this.#auth))['token'])
        }
        return await this.#postTo(endpoint, path, body)
      } catch (error) {
        // Tokens lapse: the next call asks for a new one.
        this.#token = undefined
        lastError = error
      }
    }
    throw new IdsError(
      'FB_IDS_REGISTRY_DOWN',
      `etcd: ${path} failed on ${this.#endpoints.join(', ')} (${messageOf(lastError)})`,
      { path },
      { cause: lastError },
    )
  }

  async #postTo(endpoint: string, path: string, body: object): Promise<Record<string, unknown>> {
    const url = `${endpoint}/v3/${path}`
    const {
      isOk,
      status,
      body: got,
    } = await fetchJson(url, this.#timers, this.#requestTimeoutMs, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: {
        'content-type': 'application/json',
        ...(this.#token === undefined ? {} : { authorization: this.#token }),
      },
    })
    const answer = got as Record<string, unknown>
    if (!isOk) throw new Error(`${status}: ${String(answer['error'] ?? answer['message'])}`)
    return answer
  }
}

function toEntry(raw: RawEntry): EtcdEntry {
  return { key: fromBase64(raw.key), value: fromBase64(raw.value), revision: raw.mod_revision }
}
