import { overview } from '../data/live.ts'
import { dateTime, relative, timeOfDay } from './format.ts'

/** A moment: the time of day, the whole date under the pointer, and how long ago beside it. */
export function Time({ at, isBare = false }: { readonly at: number; readonly isBare?: boolean }) {
  const now = overview.value?.hubTime ?? Date.now()
  const isOld = Math.abs(now - at) > 43_200_000
  return (
    <time class="time" dateTime={new Date(at).toISOString()} title={dateTime(at)}>
      {isOld ? dateTime(at) : timeOfDay(at)}
      {!isBare && <small>{relative(at, now)}</small>}
    </time>
  )
}
