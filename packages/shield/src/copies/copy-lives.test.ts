import { expect, test } from 'vitest'
import { livesOf, longestLifeMs } from './copy-lives.ts'

const bounds = { fallbackTtlMs: 100, ttlJitterMs: 200, now: 1030, chance: 0.5 }
const picture = { version: 1, pttlMs: -1, isFollowed: false, askedAt: 1000, dump: undefined }

test('a copy that is followed is trusted longer than one that is not, whose time starts when it was asked for', () => {
  expect(livesOf(picture, true, bounds)[0]).toBe(1500)
  expect(livesOf(picture, false, bounds)[0]).toBe(70)
  expect(livesOf(picture, false, { ...bounds, now: 5000 })[0]).toBe(1)
})

test('a marker expires with its key, a copy at most its random part later, and its mark of ownership after both', () => {
  const [markerMs, copyMs, ownershipMs] = livesOf({ ...picture, pttlMs: 40 }, true, bounds)
  expect([markerMs, copyMs]).toEqual([40, 140])
  expect(ownershipMs).toBeGreaterThan(copyMs)
})

test('no copy lives longer than the longest life', () => {
  expect(livesOf(picture, true, { ...bounds, chance: 1 })[1]).toBe(longestLifeMs(bounds.ttlJitterMs))
})
