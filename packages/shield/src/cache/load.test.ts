import { expect, test } from 'vitest'
import { endlessLease } from '../watcher/lease.ts'
import { CachedReply } from './cached-reply.ts'
import { Loads } from './load.ts'

test('readers share a load, but none waits for one that began before their guard would have', () => {
  const loads = new Loads()
  const told: string[] = []
  const first = loads.join('GET', () => told.push('first'), 1000, 100)!
  expect(loads.join('GET', () => told.push('second'), 1100, 100)).toBeUndefined()
  const later = loads.join('GET', () => told.push('third'), 1101, 100)!
  expect(later).not.toBe(first)
  expect([first.isPoisoned, later.isPoisoned]).toEqual([true, false])
  expect(loads.join('GET', () => told.push('fourth'), 1150, 100)).toBeUndefined()
  loads.end('GET', first, undefined, 2000)
  expect(told).toEqual(['first', 'second'])
  loads.end('GET', later, undefined, 2000)
  expect(told).toEqual(['first', 'second', 'third', 'fourth'])
})

test('a reply that had expired when a reader asked is given only to those who asked before', () => {
  const loads = new Loads()
  const told: string[] = []
  const reader = (name: string) => (reply: CachedReply | undefined) => told.push(`${name} ${reply?.expiresAt}`)
  const load = loads.join('GET', reader('first'), 1000, 300)!
  loads.join('GET', reader('second'), 1040, 300)
  loads.join('GET', reader('third'), 1041, 300)
  loads.end('GET', load, new CachedReply(new Uint8Array(), 1040, endlessLease), 1040)
  expect(told).toEqual(['first 1040', 'second 1040', 'third undefined'])
})
