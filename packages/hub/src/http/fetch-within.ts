import type { Timers } from '@firebreak/core'

/** Fetches and reads an answer; fails if that takes longer than `timeoutMs`. */
export async function fetchWithin<Answer>(
  timers: Timers,
  timeoutMs: number,
  url: string,
  init: RequestInit,
  read: (response: Response) => Promise<Answer>,
): Promise<Answer> {
  const end = new AbortController()
  const timer = timers.setTimeout(() => end.abort(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs)
  try {
    return await read(await fetch(url, { ...init, signal: end.signal }))
  } finally {
    timer.cancel()
  }
}
