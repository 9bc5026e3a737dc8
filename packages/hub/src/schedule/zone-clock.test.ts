import { expect, test } from 'vitest'
import { ZoneClock } from './zone-clock.ts'

const utc = (text: string) => Date.parse(`${text}Z`)

test.each([
  // Shown once.
  ['Asia/Shanghai', '2026-03-01T10:00', '2026-03-01T02:00'],
  ['Asia/Kathmandu', '2026-03-01T10:00', '2026-03-01T04:15'],
  // Shown twice: the first counts, east and west of Greenwich.
  ['Europe/Berlin', '2026-10-25T02:30', '2026-10-25T00:30'],
  ['America/New_York', '2026-11-01T01:30', '2026-11-01T05:30'],
  ['Pacific/Auckland', '2026-04-05T02:30', '2026-04-04T13:30'],
  ['Australia/Lord_Howe', '2026-04-05T01:45', '2026-04-04T14:45'],
  // Skipped: when the clocks go on.
  ['Europe/Berlin', '2026-03-29T02:30', '2026-03-29T01:30'],
  ['America/New_York', '2026-03-08T02:30', '2026-03-08T07:30'],
])('in %s the clocks show %s first at %s UTC', (zone, wall, moment) => {
  const clock = new ZoneClock(zone)
  expect(new Date(clock.momentOf(utc(wall))).toISOString()).toBe(`${moment}:00.000Z`)
})

test('a moment of every hour of a year comes back from what the clocks show, or an hour before it that shows the same', () => {
  for (const zone of ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe']) {
    const clock = new ZoneClock(zone)
    let twice = 0
    for (let at = utc('2026-01-01T00:15'); at < utc('2027-01-01T00:00'); at += 3_600_000) {
      const back = clock.momentOf(clock.wallAt(at))
      expect(clock.wallAt(back)).toBe(clock.wallAt(at))
      if (back !== at) twice++
      expect(back).toBeLessThanOrEqual(at)
    }
    expect(twice).toBeLessThanOrEqual(1)
  }
})
