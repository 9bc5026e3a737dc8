import type { CentreWatch, ConfigCentre, WatchListener } from '../centre.ts'
import type { CentreAddress, CentreMeans } from '../centre-address.ts'
import { HttpCentreClient } from '../http/http-centre-client.ts'
import { WatchLoop } from '../watch/watch-loop.ts'

const waitSeconds = 30

/**
 * Consul's key-value store as a config centre, by its HTTP API: a path is a key without its first slash, and a watch is a
 * blocking query (`index` and `wait`). The user of the URL, or its password, is the ACL token.
 */
export class ConsulCentre implements ConfigCentre {
  readonly name: string
  readonly root: string
  /** Consul's limit for one value. */
  readonly maxBytes = 512 * 1024
  readonly #http: HttpCentreClient
  readonly #means: CentreMeans
  readonly #headers: Record<string, string>

  constructor(address: CentreAddress, means: CentreMeans) {
    this.name = `consul at ${address.hosts.join(',')}`
    this.root = address.root
    this.#means = means
    this.#http = new HttpCentreClient('Consul', address, means)
    const [user = '', password = ''] = address.auth?.split(/:(.*)/s) ?? []
    const token = password || user
    this.#headers = token === '' ? {} : { 'x-consul-token': token }
  }

  async read(path: string): Promise<string | undefined> {
    return (await this.#get(path)).text
  }

  async write(path: string, text: string): Promise<void> {
    await this.#http.ask({ method: 'PUT', path: keyPath(path), headers: this.#headers, body: text })
  }

  watch(path: string, listener: WatchListener): CentreWatch {
    let index = 0
    return new WatchLoop(listener, this.#means.runtime, async ({ signal, deliver }) => {
      const before = index
      // A failed round starts over: without an index the answer is immediate.
      index = 0
      const found = await this.#get(path, before, signal)
      deliver(found.text)
      // An index that goes back belongs to another history: do not wait for it.
      index = found.index < before ? 0 : found.index
    })
  }

  async close(): Promise<void> {
    this.#http.close()
  }

  async #get(path: string, index = 0, signal?: AbortSignal): Promise<{ text: string | undefined; index: number }> {
    const waiting = index === 0 ? '' : `?index=${index}&wait=${waitSeconds}s`
    const { status, headers, text } = await this.#http.ask({
      method: 'GET',
      path: `${keyPath(path)}${waiting}`,
      headers: this.#headers,
      may404: true,
      // Consul adds up to a sixteenth to the wait.
      ...(index !== 0 && { waitMs: waitSeconds * 1100 }),
      ...(signal !== undefined && { signal }),
    })
    // A proxy may strip it: then there is nothing to wait by.
    const given = Number(headers['x-consul-index'] ?? 0)
    const found = Number.isSafeInteger(given) && given > 0 ? given : 0
    if (status === 404) return { text: undefined, index: found }
    const [{ Value: value }] = JSON.parse(text) as [{ readonly Value: string | null }]
    return { text: Buffer.from(value ?? '', 'base64').toString(), index: found }
  }
}

function keyPath(path: string): string {
  return `/v1/kv/${path.replace(/^\//, '').split('/').map(encodeURIComponent).join('/')}`
}
