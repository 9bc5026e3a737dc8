import { DoubleServer } from './double-server.ts'

/**
 * Consul's key-value store according to its documentation: `PUT` and `GET /v1/kv/KEY`, values in base64, 404 for a key
 * that is not there, blocking queries by `index` and `wait`, ACL tokens in `X-Consul-Token`, values of 512 KiB at most.
 */
export class ConsulDouble {
  readonly #values = new Map<string, { value: string; index: number }>()
  readonly #waiting = new Set<() => void>()
  readonly #token: string | undefined
  #index = 10
  readonly server = new DoubleServer((request, body, response) => {
    const url = new URL(request.url!, 'http://consul')
    const answer = (status: number, text: string) => {
      response.writeHead(status, { 'x-consul-index': String(this.#index), 'content-type': 'application/json' })
      response.end(text)
    }
    if (!url.pathname.startsWith('/v1/kv/')) return answer(404, '')
    if (this.#token !== undefined && request.headers['x-consul-token'] !== this.#token)
      return answer(403, 'Permission denied')
    const key = url.pathname.slice('/v1/kv/'.length).split('/').map(decodeURIComponent).join('/')
    if (request.method === 'PUT') {
      if (Buffer.byteLength(body) > 512 * 1024) return answer(413, 'Request body too large')
      this.#values.set(key, { value: body, index: ++this.#index })
      for (const wake of this.#waiting) wake()
      return answer(200, 'true')
    }
    const give = () => {
      const found = this.#values.get(key)
      if (found === undefined) return answer(404, '')
      const entry = {
        LockIndex: 0,
        Key: key,
        Flags: 0,
        Value: Buffer.from(found.value).toString('base64'),
        CreateIndex: found.index,
        ModifyIndex: found.index,
      }
      answer(200, JSON.stringify([entry]))
    }
    const asked = Number(url.searchParams.get('index') ?? 0)
    if (asked === 0 || asked !== this.#index) return give()
    const waitMs = Number(/^(\d+)s$/.exec(url.searchParams.get('wait') ?? '300s')?.[1]) * 1000
    const wake = () => {
      this.#waiting.delete(wake)
      clearTimeout(timer)
      give()
    }
    const timer = setTimeout(wake, waitMs).unref()
    this.#waiting.add(wake)
    response.on('close', () => {
      this.#waiting.delete(wake)
      clearTimeout(timer)
    })
  })

  constructor(token?: string) {
    this.#token = token
  }
}
