import type { ApiError } from '@firebreak/core'
import { t } from '../text/text.ts'
import { csrfHeader, isSignInWanted, type SignedIn, signedIn } from './access.ts'

type Method = 'GET' | 'PUT' | 'POST' | 'DELETE'

/** What the hub refused, with the code of its answer. */
export class RefusedCall extends Error {
  override readonly name = 'RefusedCall'
  readonly code: string

  constructor(sentence: string, code = '') {
    super(sentence)
    this.code = code
  }
}

/** Calls the hub's API; an error answer becomes an `Error` with the hub's own sentence. */
export async function call<T>(method: Method, path: string, body?: unknown): Promise<T> {
  if (method !== 'GET' && signedIn.value === undefined) await loadSession()
  const { response, text } = await send(method, path, body)
  if (response.status === 401) {
    signedIn.value = undefined
    isSignInWanted.value = true
  }
  return answerOf<T>(response, text)
}

/** The same where the body and the answer are plain text. */
export async function callText(method: Method, path: string, body?: string): Promise<string> {
  if (method !== 'GET' && signedIn.value === undefined) await loadSession()
  const headers = { 'content-type': 'text/plain', ...(method !== 'GET' && csrfHeader()) }
  const response = await reach(path, body === undefined ? { method } : { method, body, headers })
  const text = await response.text()
  if (!response.ok) throw new Error(sentenceOf(text) ?? `${response.status} ${response.statusText}`)
  return text
}

/** Signs in with a token, or with a name and a password. */
export async function signIn(proof: { token: string } | { name: string; password: string }): Promise<void> {
  const { response, text } = await send('POST', '/v1/session', proof)
  signedIn.value = { ...answerOf<SignedIn>(response, text), canSignOut: true }
  isSignInWanted.value = false
}

export async function signOut(): Promise<void> {
  await call('DELETE', '/v1/session')
  signedIn.value = undefined
  isSignInWanted.value = true
}

/** Asks who is signed in; nobody where the hub refuses. */
export async function loadSession(): Promise<void> {
  const { response, text } = await send('GET', '/v1/session')
  if (response.ok) signedIn.value = JSON.parse(text) as SignedIn
}

async function send(method: Method, path: string, body?: unknown): Promise<{ response: Response; text: string }> {
  const headers: Record<string, string> = { accept: 'application/json', ...(method !== 'GET' && csrfHeader()) }
  const init: RequestInit = { method, headers }
  if (body !== undefined) {
    init.body = JSON.stringify(body)
    headers['content-type'] = 'application/json'
  }
  const response = await reach(path, init)
  return { response, text: await response.text() }
}

/** What a browser says of a hub that is gone differs by browser, and is in no language of ours. */
async function reach(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, init)
  } catch {
    throw new Error(t('The hub does not answer.'))
  }
}

function answerOf<T>({ ok, status, statusText }: Response, text: string): T {
  if (!ok) throw new RefusedCall(sentenceOf(text) ?? `${status} ${statusText}`, codeOf(text))
  return (text === '' ? undefined : JSON.parse(text)) as T
}

function sentenceOf(text: string): string | undefined {
  try {
    const problem = JSON.parse(text) as ApiError & { readonly detail?: string }
    return problem.message ?? problem.detail
  } catch {
    return undefined
  }
}

function codeOf(text: string): string | undefined {
  try {
    return (JSON.parse(text) as Partial<ApiError>).code
  } catch {
    return undefined
  }
}
