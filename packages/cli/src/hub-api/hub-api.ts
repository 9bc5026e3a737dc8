import { type ApiError, FirebreakError } from '@firebreak/core'
import type { CommandIo } from '../command/command.ts'
import { readSecret } from '../flags/command-settings.ts'
import { dataFolderOf, readRunning } from '../up/running-file.ts'

/** Where a hub listens unless it is told otherwise. */
export const defaultHubPort = 7070

/** The hub did not answer, or answered with an error. */
export class HubCallError extends FirebreakError {
  constructor(message: string, options?: ErrorOptions) {
    super('FB_HUB_CALL', message, options)
  }
}

/** The hub that a command talks to: `--hub`, `FIREBREAK_HUB`, the running `firebreak up` of this folder, the default port. */
export function hubUrl(flag: string | undefined, io: Pick<CommandIo, 'env'>): string {
  const given = flag ?? io.env['FIREBREAK_HUB']
  if (given !== undefined) return given.replace(/\/$/, '')
  const running = readRunning(dataFolderOf(io.env))
  return running?.hubUrl ?? `http://127.0.0.1:${defaultHubPort}`
}

/** A hub's API as the commands use it. */
export class HubApi {
  readonly url: string
  readonly #token: string | undefined

  constructor(url: string, token?: string) {
    this.url = url
    this.#token = token
  }

  /** The API that the flags and the environment name. */
  static of(flag: string | undefined, io: Pick<CommandIo, 'env'>): HubApi {
    const file = io.env['FIREBREAK_TOKEN_FILE']
    const token = io.env['FIREBREAK_TOKEN'] ?? (file && readSecret('FIREBREAK_TOKEN_FILE', file))
    return new HubApi(hubUrl(flag, io), token)
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
      throw new HubCallError(
        `no hub answers at ${this.url}; start one with "firebreak up", or name it with --hub or FIREBREAK_HUB`,
        { cause },
      )
    }
    const text = await response.text()
    if (!response.ok)
      throw new HubCallError(`the hub says: ${sentenceOf(text) ?? `${response.status} ${response.statusText}`}`)
    return (text === '' ? undefined : JSON.parse(text)) as T
  }
}

function sentenceOf(text: string): string | undefined {
  try {
    return (JSON.parse(text) as ApiError).message
  } catch {
    return undefined
  }
}
