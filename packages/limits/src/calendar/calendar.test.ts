import { expect, test } from 'vitest'
import { calendarWindow } from '../spec/specs.ts'
import { Calendar } from './calendar.ts'

const hours = (window: { start: number; end: number }) => (window.end - window.start) / 3_600_000

test('days are 23, 24 and 25 hours long where clocks change', () => {
  const berlin = new Calendar('day', 'Europe/Berlin')
  expect(hours(berlin.windowOf(Date.UTC(2026, 2, 28, 12)))).toBe(24)
  expect(hours(berlin.windowOf(Date.UTC(2026, 2, 29, 12)))).toBe(23)
  expect(hours(berlin.windowOf(Date.UTC(2026, 9, 25, 12)))).toBe(25)
  expect(berlin.windowOf(Date.UTC(2026, 2, 29, 12)).start).toBe(Date.UTC(2026, 2, 28, 23))
})

test('a day begins after a midnight that does not exist', () => {
  // In 2018 São Paulo’s clocks went from 23:59:59 on 3 November to 01:00.
  const window = new Calendar('day', 'America/Sao_Paulo').windowOf(Date.UTC(2018, 10, 4, 12))
  expect(window.start).toBe(Date.UTC(2018, 10, 4, 3))
  expect(hours(window)).toBe(23)
})

test('weeks begin on Monday, months on the first, hours where the zone has them', () => {
  expect(new Calendar('week', 'UTC').windowOf(Date.UTC(2026, 0, 1))).toEqual({
    start: Date.UTC(2025, 11, 29),
    end: Date.UTC(2026, 0, 5),
  })
  expect(new Calendar('month', 'Asia/Shanghai').windowOf(Date.UTC(2026, 1, 10))).toEqual({
    start: Date.UTC(2026, 0, 31, 16),
    end: Date.UTC(2026, 1, 28, 16),
  })
  expect(new Calendar('hour', 'Asia/Kolkata').windowOf(Date.UTC(2026, 0, 1, 12, 10))).toEqual({
    start: Date.UTC(2026, 0, 1, 11, 30),
    end: Date.UTC(2026, 0, 1, 12, 30),
  })
})

test('windows follow each other without a gap through two years', () => {
  for (const zone of ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Shanghai']) {
    const calendar = new Calendar('day', zone)
    let window = calendar.windowOf(Date.UTC(2025, 0, 1))
    for (let day = 0; day < 730; day++) {
      const next = calendar.windowOf(window.end)
      expect(next.start).toBe(window.end)
      expect(calendar.windowOf(window.end - 1).start).toBe(window.start)
      window = next
    }
  }
})

test('an unknown time zone is refused', () => {
  expect(() => calendarWindow({ limit: 1, unit: 'day', timeZone: 'Mars/Olympus' })).toThrow(/IANA/)
})
