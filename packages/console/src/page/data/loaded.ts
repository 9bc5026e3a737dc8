import { useEffect, useState } from 'preact/hooks'
import { call } from './api.ts'

/** What a page knows of an API answer that it reads again every few seconds. */
export interface Loaded<T> {
  readonly value: T | undefined
  readonly error: string | undefined
  reload(): void
}

/** Reads `path` now and every `everyMs`. */
export function useLoaded<T>(path: string, everyMs = 2000): Loaded<T> {
  const [value, setValue] = useState<T>()
  const [error, setError] = useState<string>()
  const [turn, setTurn] = useState(0)
  useEffect(() => {
    let isWanted = true
    const read = async () => {
      try {
        const next = await call<T>('GET', path)
        if (!isWanted) return
        setValue(next)
        setError(undefined)
      } catch (problem) {
        if (isWanted) setError((problem as Error).message)
      }
    }
    void read()
    const timer = setInterval(read, everyMs)
    return () => {
      isWanted = false
      clearInterval(timer)
    }
  }, [path, everyMs, turn])
  return { value, error, reload: () => setTurn((before) => before + 1) }
}
