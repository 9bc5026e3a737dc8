import { type ApiError, FirebreakError } from '@firebreak/core'
import { type CommandIo, UsageError } from '../command/command.ts'
import { readSecret } from '../flags/command-settings.ts'
import { dataFolderOf, readRunning } from '../up/running-file.ts'

/** The port that a hub listens on by default. */
export const defaultHubPort = 7070

/** The hub did not answer, or answered with an error. */
export class HubCallError extends FirebreakError {
  /** No hub has seen the call. */
  readonly isUnanswered: boolean

  constructor(message: string, { isUnanswered = false, ...options }: ErrorOptions & { isUnanswered?: boolean } = {}) {
    super('FB_HUB_CALL', message, options)
    this.isUnanswered = isUnanswered
  }
}

/**
 * The hubs that a command may talk to: those of `--hub` or `FIREBREAK_HUB`, separated by commas as in applications,
 * otherwise the running `firebreak up` of this folder, otherwise the default port.
 */
export function hubUrls(flag: string | undefined, io: Pick<CommandIo, 'env'>): readonly string[] {
  const given = flag ?? io.env['FIREBREAK_HUB']
  if (given !== undefined) return given.split(',').map((url) => checkedUrl(url.trim(), flag))
  const running = readRunning(dataFolderOf(io.env))
  return [running?.hubUrl ?? `http://127.0.0.1:${defaultHubPort}`]
}

/** A hub's address without the last slash; an invalid one is refused before any call. */
function checkedUrl(url: string, flag: string | undefined): string {
  if (!/^https?:\/\/[^/]/i.test(url) || !URL.canParse(url)) {
    const place = flag === undefined ? 'FIREBREAK_HUB' : '--hub'
    throw new UsageError(`${place} is "${url}"; it must be the address of a hub, such as http://127.0.0.1:7070`)
  }
  return url.replace(/\/$/, '')
}

/** The token from the environment, directly or in a file. */
export function tokenOf({ env }: Pick<CommandIo, 'env'>): string | undefined {
  const file = env['FIREBREAK_TOKEN_FILE']
  return env['FIREBREAK_TOKEN'] ?? (file && readSecret('FIREBREAK_TOKEN_FILE', file))
}

/** A hub's API as the commands use it; with several hubs, the first that can be reached. */
export class HubApi {
  /** The remaining hubs, the next one to call first. */
  readonly #urls: string[]
  readonly #token: string | undefined

  constructor(urls: readonly string[], token?: string) {
    this.#urls = [...urls]
    this.#token = token
  }

  /** The API named by flags and environment. */
  static of(flag: string | undefined, io: Pick<CommandIo, 'env'>): HubApi {
    return new HubApi(hubUrls(flag, io), tokenOf(io))
  }

  get url(): string {
    return this.#urls[0]!
  }

  async call<T>(method: 'GET' | 'PUT' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<T> {
    const headers: Record<string, string> = { accept: 'application/json' }
    if (this.#token !== undefined) headers['authorization'] = `Bearer ${this.#token}`
    if (body !== undefined) headers['content-type'] = 'application/json'
    let response: Response
    try {
      response = await fetch(`${this.url}${path}`, {
        method,
        headers,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
    } catch (cause) {
      // It has not seen the call, so another hub may get it.
      if (this.#urls.length > 1 && isUnreachable(cause)) {
        this.#urls.shift()
        return this.call(method, path, body)
      }
      const refused = certificateProblem(cause)
      if (refused !== undefined) {
        throw new HubCallError(
          `the certificate of the hub at ${this.url} is not trusted: ${refused}; ` +
            'name the authority that signed it with NODE_EXTRA_CA_CERTS=FILE',
          { cause },
        )
      }
      throw new HubCallError(
        `no hub answers at ${this.url}${otherScheme(this.url, cause)}; start one with "firebreak up", or name it with --hub or FIREBREAK_HUB`,
        { cause, isUnanswered: true },
      )
    }
    const text = await response.text()
    if (!response.ok) {
      const sentence = sentenceOf(text)
      if (sentence === undefined) throw new HubCallError(this.#notHub(response))
      const hint =
        response.status !== 401
          ? ''
          : this.#token === undefined
            ? '; give a token with FIREBREAK_TOKEN or FIREBREAK_TOKEN_FILE'
            : '; it does not accept the one in FIREBREAK_TOKEN or FIREBREAK_TOKEN_FILE: commands need the token of a person, for this hub'
      throw new HubCallError(`the hub replied: ${sentence}${hint}`)
    }
    if (text === '') return undefined as T
    try {
      return JSON.parse(text) as T
    } catch (cause) {
      throw new HubCallError(this.#notHub(response), { cause })
    }
  }

  /** Something else that speaks HTTP answered, such as another service on that port or a proxy in front of the hub. */
  #notHub({ status, statusText, headers }: Response): string {
    const type = headers.get('content-type')?.split(';')[0]
    const what = `${status}${statusText === '' ? '' : ` ${statusText}`}${type === undefined ? '' : `, ${type}`}`
    return `what answers at ${this.url} is not a hub's API (${what}); name the hub's own address with --hub or FIREBREAK_HUB, such as http://hub-1:7070`
  }
}

/** True if there was no connection over which anything could have been sent. */
function isUnreachable(error: unknown): boolean {
  const { code } = ((error as Error).cause ?? error) as NodeJS.ErrnoException
  return ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'].includes(
    code ?? '',
  )
}

/** A hint if something answers but expects TLS and was called without, or the other way round. */
function otherScheme(url: string, error: unknown): string {
  const { code, message } = ((error as Error).cause ?? error) as NodeJS.ErrnoException
  if (url.startsWith('https:')) {
    const isPlain = code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG'
    return isPlain ? ': the server there does not use TLS; write http:// if it is your hub' : ''
  }
  const isCut = code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || /other side closed|hang up/.test(message ?? '')
  // Redis, and a proxy in front of it, close too.
  return isCut
    ? `: the server there closed the connection; write https:// if your hub uses TLS, and check the port: a hub has ${defaultHubPort} by default, Redis 6379, a proxy 6380`
    : ''
}

/** Node's message about an untrusted certificate; undefined for any other failure. */
function certificateProblem(error: unknown): string | undefined {
  const { code, message } = ((error as Error).cause ?? error) as NodeJS.ErrnoException
  if (code === undefined || !/CERT|SIGNATURE|ALTNAME/.test(code)) return undefined
  // After the first part Node adds its own advice, which is not about hubs.
  return `${message.split(';')[0]} (${code})`
}

function sentenceOf(text: string): string | undefined {
  try {
    return (JSON.parse(text) as ApiError).message
  } catch {
    return undefined
  }
}
