import { dayMs } from '../schedule/zone-clock.ts'

/** 0 is Sunday. */
export function weekdayOf(local: number): number {
  return (((Math.floor(local / dayMs) + 4) % 7) + 7) % 7
}

const names = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']

export function weekdayName(weekday: number): string {
  return names[weekday]!
}

/** "10:00" */
export function clockText(localMs: number): string {
  const minutes = Math.round((((localMs % dayMs) + dayMs) % dayMs) / 60_000) % 1440
  return `${String(Math.floor(minutes / 60)).padStart(2, '0')}:${String(minutes % 60).padStart(2, '0')}`
}
