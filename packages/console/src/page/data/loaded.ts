import { useEffect, useState } from 'preact/hooks'
import { call } from './api.ts'
import { isPaused } from './pause.ts'

/** What a page knows of an API answer that it reads again every few seconds. */
export interface Loaded<T> {
  readonly value: T | undefined
  readonly error: string | undefined
  reload(): void
}

/**
 * Reads `path` now and every `everyMs`, unless the page is paused or nobody looks at it; an empty path reads nothing. What was
 * read stays until the next answer, as long as it is about the same subject: a period that moves on is.
 */
export function useLoaded<T>(path: string, everyMs = 2000, subject = path): Loaded<T> {
  const [state, setState] = useState<{ subject: string; value?: T; error?: string }>({ subject })
  const [turn, setTurn] = useState(0)
  useEffect(() => {
    let isWanted = true
    let isReading = false
    const read = async () => {
      if (isReading || path === '') return
      isReading = true
      try {
        const value = await call<T>('GET', path)
        if (isWanted) setState({ subject, value })
      } catch (problem) {
        const error = (problem as Error).message
        // The last figures stay, with what is wrong now.
        if (isWanted) setState((before) => ({ ...(before.subject === subject ? before : { subject }), error }))
      }
      isReading = false
    }
    void read()
    const timer = setInterval(() => !isPaused.value && !document.hidden && void read(), everyMs)
    return () => {
      isWanted = false
      clearInterval(timer)
    }
  }, [path, everyMs, subject, turn])
  const isOfThis = state.subject === subject && path !== ''
  return {
    value: isOfThis ? state.value : undefined,
    error: isOfThis ? state.error : undefined,
    reload: () => setTurn((before) => before + 1),
  }
}
