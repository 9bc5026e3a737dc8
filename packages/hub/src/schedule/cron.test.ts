import { expect, test } from 'vitest'
import { parseCron } from './cron.ts'
import { parseSchedule } from './parse-schedule.ts'

/** The next times after one, as ISO dates of UTC. */
function times(text: string, after: string, count = 1): string[] {
  const schedule = parseSchedule(text)
  const found: string[] = []
  let at = Date.parse(after)
  for (let index = 0; index < count; index++) {
    at = schedule.next(at)!
    found.push(new Date(at).toISOString().slice(0, 16))
  }
  return found
}

test.each([
  ['0 10 * * *', '2026-03-01T10:00Z', ['2026-03-02T10:00', '2026-03-03T10:00']],
  ['*/15 9-10 * * mon-fri', '2026-03-06T10:30Z', ['2026-03-06T10:45', '2026-03-09T09:00']],
  ['58 19 * * fri in Asia/Shanghai', '2026-03-01T00:00Z', ['2026-03-06T11:58', '2026-03-13T11:58']],
  ['0 0 1 jan *', '2026-03-01T00:00Z', ['2027-01-01T00:00']],
  ['0 0 29 2 *', '2026-03-01T00:00Z', ['2028-02-29T00:00']],
  // Either day is enough where both are given.
  ['0 0 13 * 5', '2026-03-01T00:00Z', ['2026-03-06T00:00', '2026-03-13T00:00', '2026-03-20T00:00']],
  ['0 6 * * 7', '2026-03-02T00:00Z', ['2026-03-08T06:00']],
  // A zone far ahead: its day is not the day of UTC.
  ['30 0 * * * in Pacific/Auckland', '2026-07-01T00:00Z', ['2026-07-01T12:30', '2026-07-02T12:30']],
  // Berlin skips 02:30 on 29 March, and shows it twice on 25 October.
  ['30 2 * * * in Europe/Berlin', '2026-03-28T12:00Z', ['2026-03-29T01:30', '2026-03-30T00:30']],
  ['30 2 * * * in Europe/Berlin', '2026-10-24T12:00Z', ['2026-10-25T00:30', '2026-10-26T01:30']],
] as const)('%s after %s', (text, after, expected) => {
  expect(times(text, after, expected.length)).toEqual(expected)
})

test('each minute comes once, in every zone, through changes of its clock', () => {
  for (const zone of ['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kolkata']) {
    const schedule = parseCron('0 * * * *', zone)
    let at = Date.parse('2026-03-27T00:00Z')
    for (let hour = 0; hour < 24 * 10; hour++) {
      const next = schedule.next(at)!
      expect(next).toBeGreaterThan(at)
      expect(next - at).toBeLessThanOrEqual(2 * 3_600_000)
      at = next
    }
  }
})

test('every 10m is that long after', () => {
  expect(parseSchedule('every 10m').next(1000)).toBe(601_000)
})

test('a schedule that never comes says so, and one that cannot be read says why', () => {
  expect(parseSchedule('0 0 30 2 *').next(0)).toBe(undefined)
  for (const text of ['', '* * * *', '60 * * * *', 'a * * * *', '* * * * * in Nowhere', '5-1 * * * *', '*/0 * * * *'])
    expect(() => parseSchedule(text), text).toThrow()
})
