import { createHash } from 'node:crypto'
import type { CentreWatch, ConfigCentre, WatchListener } from '../centre.ts'
import type { CentreAddress, CentreMeans } from '../centre-address.ts'
import { CentreError } from '../errors.ts'
import { HttpCentreClient } from '../http/http-centre-client.ts'
import { WatchLoop } from '../watch/watch-loop.ts'

const waitMs = 30_000
/** A token is used for this fraction of its lifetime. */
const tokenShare = 0.8

/**
 * Nacos as a config centre, using the HTTP API of its versions 1 and 2 (`/nacos/v1/cs/configs`); a watch is its long
 * poll. The part of a path before the last slash is the group, with dots for slashes, and the rest the data id. Nacos
 * accepts letters, digits and `._:-` in both: any other byte is written as `:` and two hex digits.
 */
export class NacosCentre implements ConfigCentre {
  readonly name: string
  readonly root: string
  readonly maxBytes = 1_000_000
  readonly #http: HttpCentreClient
  readonly #means: CentreMeans
  readonly #auth: string | undefined
  readonly #tenant: string
  #token: { readonly text: string; readonly until: number } | undefined

  constructor(address: CentreAddress, means: CentreMeans) {
    this.name = `nacos at ${address.hosts.join(',')}`
    this.root = address.root
    this.#means = means
    this.#auth = address.auth
    this.#tenant = address.parameters.get('namespace') ?? ''
    this.#http = new HttpCentreClient('Nacos', address, means)
  }

  async read(path: string): Promise<string | undefined> {
    const query = await this.#query({ ...this.#placeOf(path) })
    const { status, text } = await this.#ask({
      method: 'GET',
      path: `/nacos/v1/cs/configs?${query}`,
      may404: true,
    })
    return status === 404 ? undefined : text
  }

  async write(path: string, text: string): Promise<void> {
    const body = await this.#query({ ...this.#placeOf(path), content: text, type: 'json' })
    const answer = await this.#ask({ method: 'POST', path: '/nacos/v1/cs/configs', headers: form, body })
    if (answer.text.trim() !== 'true')
      throw new CentreError(
        'FB_CENTRE_REFUSED',
        `Nacos did not accept ${path}: it answered ${answer.text.slice(0, 100)}`,
      )
  }

  watch(path: string, listener: WatchListener): CentreWatch {
    const { dataId, group, tenant } = this.#placeOf(path)
    return new WatchLoop(listener, this.#means.runtime, async ({ signal, deliver }) => {
      const text = await this.read(path)
      deliver(text)
      const sum = text === undefined ? '' : createHash('md5').update(text).digest('hex')
      const fields = [dataId, group, sum, ...(tenant === undefined ? [] : [tenant])].join('\u0002')
      const query = await this.#query({})
      await this.#ask({
        method: 'POST',
        path: `/nacos/v1/cs/configs/listener${query === '' ? '' : `?${query}`}`,
        headers: { ...form, 'long-pulling-timeout': String(waitMs) },
        body: new URLSearchParams({ 'Listening-Configs': `${fields}\u0001` }).toString(),
        waitMs: waitMs * 1.2,
        signal,
      })
    })
  }

  async close(): Promise<void> {
    this.#http.close()
  }

  #placeOf(path: string): { readonly dataId: string; readonly group: string; readonly tenant?: string } {
    const parts = path.split('/').filter((part) => part !== '')
    const dataId = nacosName(parts.pop() ?? '')
    const group = parts.map(nacosName).join('.') || 'DEFAULT_GROUP'
    return { dataId, group, ...(this.#tenant !== '' && { tenant: this.#tenant }) }
  }

  async #ask(question: Parameters<HttpCentreClient['ask']>[0]) {
    try {
      return await this.#http.ask(question)
    } catch (error) {
      // Whatever the error was, the next call signs in again.
      this.#token = undefined
      throw error
    }
  }

  async #query(fields: Readonly<Record<string, string>>): Promise<string> {
    const accessToken = await this.#signIn()
    return new URLSearchParams({ ...fields, ...(accessToken !== undefined && { accessToken }) }).toString()
  }

  async #signIn(): Promise<string | undefined> {
    if (this.#auth === undefined) return undefined
    const { clock } = this.#means.runtime
    if (this.#token !== undefined && clock.now() < this.#token.until) return this.#token.text
    const [username = '', password = ''] = this.#auth.split(/:(.*)/s)
    const body = new URLSearchParams({ username, password }).toString()
    const { text } = await this.#http.ask({ method: 'POST', path: '/nacos/v1/auth/login', headers: form, body })
    const { accessToken, tokenTtl } = JSON.parse(text) as { accessToken: string; tokenTtl: number }
    this.#token = { text: accessToken, until: clock.now() + tokenTtl * 1000 * tokenShare }
    return accessToken
  }
}

const form = { 'content-type': 'application/x-www-form-urlencoded' }

/** A name in the characters that Nacos accepts; `:` is used only for escapes. */
export function nacosName(text: string): string {
  return [...Buffer.from(text)]
    .map((byte) => {
      const letter = String.fromCharCode(byte)
      return /[\w.-]/.test(letter) ? letter : `:${byte.toString(16).padStart(2, '0')}`
    })
    .join('')
}
