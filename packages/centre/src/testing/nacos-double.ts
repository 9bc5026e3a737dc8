import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { DoubleServer } from './double-server.ts'

/**
 * The configs of Nacos 1 and 2 according to their documentation: `GET` and `POST /nacos/v1/cs/configs`, 404 for one
 * that is not there, the long poll `POST /nacos/v1/cs/configs/listener` by MD5, `POST /nacos/v1/auth/login` for a
 * token, and which characters a data id and a group may have.
 */
export class NacosDouble {
  readonly #contents = new Map<string, string>()
  readonly #waiting = new Set<() => void>()
  readonly #user: { readonly name: string; readonly password: string } | undefined
  readonly #token = 'nacos-token'
  readonly server = new DoubleServer((request, body, response) => {
    const url = new URL(request.url!, 'http://nacos')
    const fields = new URLSearchParams(body)
    const given = (name: string) => url.searchParams.get(name) ?? fields.get(name) ?? ''
    const answer = (status: number, text: string) => {
      response.writeHead(status, { 'content-type': 'text/plain;charset=UTF-8' })
      response.end(text)
    }
    if (url.pathname === '/nacos/v1/auth/login') {
      const isKnown = given('username') === this.#user?.name && given('password') === this.#user?.password
      return isKnown
        ? answer(200, JSON.stringify({ accessToken: this.#token, tokenTtl: 18000, globalAdmin: true }))
        : answer(403, 'unknown user!')
    }
    if (this.#user !== undefined && given('accessToken') !== this.#token) return answer(403, 'user not found!')
    if (url.pathname === '/nacos/v1/cs/configs/listener')
      return this.#listen(given('Listening-Configs'), request.headers['long-pulling-timeout'], response, answer)
    if (url.pathname !== '/nacos/v1/cs/configs') return answer(404, '')
    const [dataId, group] = [given('dataId'), given('group')]
    if (![dataId, group].every((name) => /^[\w.:-]+$/.test(name))) return answer(400, 'invalid param')
    const id = [dataId, group, given('tenant')].join('\u0002')
    if (request.method === 'POST') {
      this.#contents.set(id, given('content'))
      for (const wake of this.#waiting) wake()
      return answer(200, 'true')
    }
    const content = this.#contents.get(id)
    if (content === undefined) answer(404, 'config data not exist')
    else answer(200, content)
  })

  constructor(user?: { readonly name: string; readonly password: string }) {
    this.#user = user
  }

  /** Answers at once if the MD5 differs, otherwise when it does or the time is up. */
  #listen(
    asked: string,
    timeout: string | string[] | undefined,
    response: ServerResponse,
    answer: (status: number, text: string) => void,
  ): void {
    const [dataId = '', group = '', sum = '', tenant = ''] = asked.split('\u0001')[0]!.split('\u0002')
    const changed = () => {
      const now = this.#contents.get([dataId, group, tenant].join('\u0002'))
      const nowSum = now === undefined ? '' : createHash('md5').update(now).digest('hex')
      return nowSum === sum ? '' : encodeURIComponent(`${dataId}\u0002${group}\u0002${tenant}\u0001`)
    }
    if (changed() !== '' || timeout === undefined) {
      answer(200, changed())
      return
    }
    const end = () => {
      this.#waiting.delete(wake)
      clearTimeout(timer)
    }
    const finish = () => {
      end()
      answer(200, changed())
    }
    const wake = () => {
      if (changed() !== '') finish()
    }
    const timer = setTimeout(finish, Number(timeout)).unref()
    this.#waiting.add(wake)
    response.on('close', end)
  }
}
