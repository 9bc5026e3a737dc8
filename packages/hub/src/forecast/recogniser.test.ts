import { seededRandom } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { ZoneClock } from '../schedule/zone-clock.ts'
import { type Expected, Recogniser } from './recogniser.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
/** A Monday. */
const monday = Date.UTC(2026, 8, 28)

function recogniser(timeZone = 'UTC', maxSubjects?: number): Recogniser {
  const prefixOf = (key: string) => key.split(':')[0]!.concat(key.includes(':') ? ':' : '')
  return new Recogniser(new ZoneClock(timeZone), prefixOf, maxSubjects)
}

/** Lets keys burn for ten minutes from a time on. */
function burn(into: Recogniser, at: number, ...keys: string[]): string[] {
  into.pass(at)
  const following = into.observe(
    keys.map((key) => ({ redisClusterId: 'main', key })),
    at,
  )
  into.observe(
    keys.map((key) => ({ redisClusterId: 'main', key })),
    at + 600_000,
  )
  return following.map(({ key }) => key)
}

/** What a store has after it was told of all changes. */
function keptOf(from: Recogniser, store = new Map<string, string>()): Map<string, string> {
  for (const [id, text] of from.takeChanged()) {
    if (text === undefined) store.delete(id)
    else store.set(id, text)
  }
  return store
}

function expectedOf(from: Recogniser, name: string, now: number): Expected | undefined {
  from.pass(now)
  return [...from.expected(now)].find(({ subject }) => subject.name === name)
}

test('what came on three days at a time is expected on the fourth, and not before', () => {
  const found = recogniser()
  for (let day = 0; day < 3; day++) {
    expect(expectedOf(found, 'banner', monday + day * dayMs)?.isTrusted ?? false).toBe(false)
    burn(found, monday + day * dayMs + 10 * hourMs + day * 120_000, 'banner')
  }
  const next = expectedOf(found, 'banner', monday + 3 * dayMs)!
  expect(next.isTrusted).toBe(true)
  expect(Math.abs(next.at - (monday + 3 * dayMs + 10 * hourMs))).toBeLessThan(10 * 60_000)
  expect(next.keys).toEqual(['banner'])
})

test('each Friday: no other day is expected', () => {
  const found = recogniser()
  const friday = monday + 4 * dayMs + 20 * hourMs
  for (let week = 0; week < 4; week++) burn(found, friday + week * 7 * dayMs, 'friday')
  for (let day = 0; day < 4; day++) {
    const next = expectedOf(found, 'friday', monday + (28 + day) * dayMs)!
    expect(next.isTrusted).toBe(true)
    expect(Math.round((next.at - (friday + 28 * dayMs)) / hourMs)).toBe(0)
  }
})

test('from Monday to Friday: weekends are not expected once one was seen', () => {
  const found = recogniser()
  for (let day = 0; day < 12; day++) if (day % 7 < 5) burn(found, monday + day * dayMs + 9 * hourMs, 'work')
  const next = expectedOf(found, 'work', monday + 12 * dayMs)!
  expect(next.at).toBe(monday + 14 * dayMs + 9 * hourMs)
})

test('a holiday costs confidence, and nothing else; two misses in a row stop it until it comes again', () => {
  const found = recogniser()
  const at = (day: number) => monday + day * dayMs + 12 * hourMs
  for (let day = 0; day < 10; day++) burn(found, at(day), 'daily')
  const before = expectedOf(found, 'daily', at(10) - hourMs)!.chance
  const after = expectedOf(found, 'daily', at(11) - hourMs)!
  expect(after.isTrusted).toBe(true)
  expect(after.chance).toBeLessThan(before)
  expect(expectedOf(found, 'daily', at(12) - hourMs)!.isTrusted).toBe(false)
  burn(found, at(12), 'daily')
  expect(expectedOf(found, 'daily', at(13) - hourMs)!.isTrusted).toBe(true)
})

test('what moves for good is followed after two times', () => {
  const found = recogniser()
  for (let day = 0; day < 10; day++) burn(found, monday + day * dayMs + 10 * hourMs, 'moved')
  for (let day = 10; day < 12; day++) burn(found, monday + day * dayMs + 13 * hourMs, 'moved')
  const next = expectedOf(found, 'moved', monday + 12 * dayMs)!
  expect(next.isTrusted).toBe(true)
  expect(Math.round((next.at - monday - 12 * dayMs) / hourMs)).toBe(13)
})

test('it is 10:00 on the wall: the end of summer time moves nothing', () => {
  const found = recogniser('Europe/Berlin')
  // 10:00 in Berlin is 8:00 UTC until 25 October, and 9:00 after it.
  const saturday = Date.UTC(2026, 9, 24, 8)
  for (let day = -5; day <= 0; day++) burn(found, saturday + day * dayMs, 'wall')
  expect(expectedOf(found, 'wall', saturday + 2 * hourMs)!.at).toBe(saturday + dayMs + hourMs)
})

test('heat at random times is not expected, whatever the seed', () => {
  let expected = 0
  const [seeds, weeks] = [30, 8]
  for (let seed = 1; seed <= seeds; seed++) {
    const random = seededRandom(seed)
    const found = recogniser()
    const warmed = new Set<string>()
    let next = monday + random() * 2 * dayMs
    for (let now = monday; now < monday + weeks * 7 * dayMs; now += hourMs) {
      for (const { pattern, day } of found.soon(now, now + hourMs))
        warmed.add(`${Math.round(pattern.centre / hourMs)} ${day}`)
      if (now < next) continue
      burn(found, now + random() * hourMs, 'noise')
      next = now + random() * 2 * dayMs
    }
    expected += warmed.size
  }
  // Once a day at a random time, and yet it is not taken for a pattern more often than once in ten weeks.
  expect(expected / (seeds * weeks)).toBeLessThan(0.1)
})

test('keys that open together: the first of them brings the others, from the fourth time on', () => {
  const found = recogniser()
  const keys = ['sale:stock', 'sale:price', 'sale:banner']
  const openings = [0, 1.3, 4.8, 6.1, 9.7].map((day) => monday + day * dayMs)
  const first = openings.slice(0, 4).map((at) => {
    const following = burn(found, at, keys[0]!)
    burn(found, at + 60_000, ...keys.slice(1), `sale:only-${at}`)
    return following
  })
  expect(first.slice(0, 2)).toEqual([[], []])
  expect(burn(found, openings[4]!, keys[0]!).sort()).toEqual(['sale:banner', 'sale:price'])
})

test('a prefix whose keys are others each time is recognised, and says that none can be warmed', () => {
  const found = recogniser()
  for (let day = 0; day < 5; day++) burn(found, monday + day * dayMs + 18 * hourMs, `show:${day}`)
  const next = expectedOf(found, 'show:', monday + 5 * dayMs)!
  expect(next).toMatchObject({ isTrusted: true, keys: [] })
})

test('what was kept is taken over, and goes on where it was', () => {
  const [before, after] = [recogniser(), recogniser()]
  for (let day = 0; day < 5; day++) burn(before, monday + day * dayMs + 7 * hourMs, 'kept')
  after.restore(new Map([...keptOf(before), ['key main broken', '{']]))
  const now = monday + 5 * dayMs
  expect(expectedOf(after, 'kept', now)!.at).toBe(expectedOf(before, 'kept', now)!.at)
})

test('what is kept has a bound: the oldest without a pattern go, in memory and in the store', () => {
  const found = recogniser('UTC', 20)
  for (let day = 0; day < 4; day++) burn(found, monday + day * dayMs + 7 * hourMs, 'daily')
  const store = keptOf(found)
  for (let index = 0; index < 200; index++) {
    burn(found, monday + 4 * dayMs + index * hourMs, `news:${index}`)
    keptOf(found, store)
  }
  expect(store.size).toBe(20)
  expect([...store.keys()]).toEqual(
    expect.arrayContaining(['key main daily', 'prefix main news:', 'key main news:199']),
  )
  // One that takes over more than it may have, deletes the rest.
  const small = recogniser('UTC', 5)
  small.restore(store)
  keptOf(small, store)
  expect([...store.keys()].sort()).toEqual(
    ['key main daily', ...[197, 198, 199].map((index) => `key main news:${index}`), 'prefix main news:'].sort(),
  )
})

test('a day on which nothing comes is quiet after five that stayed away, until two of them come, or until the next day', () => {
  const found = recogniser()
  const names = Array.from({ length: 12 }, (_, hour) => `k${hour}`)
  for (let day = 0; day < 5; day++)
    for (const [hour, name] of names.entries()) burn(found, monday + day * dayMs + (hour + 1) * hourMs, name)
  const holiday = monday + 5 * dayMs
  const quietAt = (at: number) => {
    found.pass(at)
    return found.isQuiet(at)
  }
  expect(quietAt(holiday + 4.9 * hourMs)).toBe(false)
  expect(quietAt(holiday + 5.6 * hourMs)).toBe(true)
  expect(quietAt(holiday + dayMs)).toBe(false)
  const late = monday + 6 * dayMs
  expect(quietAt(late + 6.6 * hourMs)).toBe(true)
  burn(found, late + 7 * hourMs, 'k6')
  expect(quietAt(late + 7 * hourMs)).toBe(true)
  burn(found, late + 8 * hourMs, 'k7')
  expect(quietAt(late + 8 * hourMs)).toBe(false)
})

test('one pattern that ends does not make a day quiet', () => {
  const found = recogniser()
  for (let day = 0; day < 8; day++) {
    for (let hour = 0; hour < 12; hour++)
      if (day < 5 || hour % 3 === 0) burn(found, monday + day * dayMs + (hour + 1) * hourMs, `k${hour}`)
    found.pass(monday + day * dayMs + 13 * hourMs)
    expect(found.isQuiet(monday + day * dayMs + 13 * hourMs)).toBe(false)
  }
})
