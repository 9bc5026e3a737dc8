import type { Timers } from '@firebreak/core'

/** What an HTTP server answered. */
export interface JsonAnswer {
  readonly isOk: boolean
  readonly status: number
  readonly body: unknown
}

/** Asks an HTTP server for JSON; the whole of it, body included, takes `timeoutMs` at most. */
export async function fetchJson(
  url: string,
  timers: Timers,
  timeoutMs: number,
  init: Omit<RequestInit, 'signal'> = {},
): Promise<JsonAnswer> {
  const controller = new AbortController()
  const timer = timers.setTimeout(() => controller.abort(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs)
  try {
    const response = await fetch(url, { ...init, signal: controller.signal })
    return { isOk: response.ok, status: response.status, body: (await response.json()) as unknown }
  } finally {
    timer.cancel()
  }
}
