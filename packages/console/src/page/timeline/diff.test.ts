import { keyName } from '@firebreak/core'
import { expect, test } from 'vitest'
import { changesBetween, shortText } from './diff.tsx'

test('only what differs is told, with its path', () => {
  const before = { mode: 'on', levels: [{ enter: 100 }, { enter: 900 }], gone: 1 }
  const after = { mode: 'on', levels: [{ enter: 200 }, { enter: 900 }], fresh: 2 }
  expect(changesBetween(before, after)).toEqual([
    { path: 'levels.0.enter', before: 100, after: 200 },
    { path: 'gone', before: 1, after: undefined },
    { path: 'fresh', before: undefined, after: 2 },
  ])
  expect(changesBetween(undefined, { a: 1 })).toEqual([{ path: '', before: undefined, after: { a: 1 } }])
  expect(changesBetween({ a: 1 }, { a: 1 })).toEqual([])
})

test('something as a whole is told by what makes it what it is', () => {
  const rule = {
    id: 'stock',
    mode: 'on',
    redisClusterId: '*',
    pattern: { kind: 'prefix', prefix: 'stock:' },
    except: [],
    levels: [{ measure: 'accesses', enter: 500, exit: 350, strategies: [{ strategy: 'LocalCache', expireTime: 60 }] }],
  }
  expect(shortText(rule)).toBe('mode on, prefix stock:, enter 500, strategy LocalCache')
  expect(shortText('text')).toBe('text')
  expect(shortText({ keys: [keyName(Uint8Array.of(0xff, 0, 0x80))] })).toBe('keys %FF%00%80')
  const at = new Date(2026, 10, 19, 3, 4, 5).getTime()
  const job = { keys: ['product:1', 'product:2'], forMs: 1_800_000, at, services: [], keyCount: 2 }
  expect(shortText(job)).toBe('keys product:1, product:2, forMs 30 min, at 2026-11-19 03:04:05, keyCount 2')
})
