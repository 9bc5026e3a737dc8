import { parseCron, type Schedule, ScheduleError } from './cron.ts'

const units: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/**
 * Parses schedules in the form that users write: `every 10m`, or five cron fields; append `in ZONE` for a time zone.
 */
export function parseSchedule(text: string, defaultZone = 'UTC'): Schedule {
  const [, count, unit] = /^every\s+(\d+)\s*([smhd])$/.exec(text.trim()) ?? []
  if (count !== undefined) {
    const everyMs = Number(count) * units[unit!]!
    if (everyMs < 1000) throw new ScheduleError(`"${text}" is less than a second`)
    return { next: (afterMs) => afterMs + everyMs }
  }
  const [, cron = text, zone = defaultZone] = /^(.*\S)\s+in\s+(\S+)$/.exec(text.trim()) ?? []
  return parseCron(cron, zone)
}
