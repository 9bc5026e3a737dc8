import type { ApiError } from '@firebreak/core'
import { authorization, isTokenWanted } from './access.ts'

/** Calls the hub's API; an error answer becomes an `Error` with the hub's own sentence. */
export async function call<T>(method: 'GET' | 'PUT' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<T> {
  const init: RequestInit = { method, headers: { accept: 'application/json', ...authorization() } }
  if (body !== undefined) {
    init.body = JSON.stringify(body)
    init.headers = { ...init.headers, 'content-type': 'application/json' }
  }
  const response = await fetch(path, init)
  const text = await response.text()
  if (response.status === 401) isTokenWanted.value = true
  if (!response.ok) throw new Error(sentenceOf(text) ?? `${response.status} ${response.statusText}`)
  return (text === '' ? undefined : JSON.parse(text)) as T
}

function sentenceOf(text: string): string | undefined {
  try {
    return (JSON.parse(text) as ApiError).message
  } catch {
    return undefined
  }
}
