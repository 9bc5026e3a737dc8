import { hashBytes } from '@firebreak/core/heat'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { HotKey } from '../cache/hot-key.ts'
import { HotTable } from './hot-table.ts'

test('a key is found by its bytes while it is in the table, and no other key is', () => {
  const step = fc.record({ key: fc.uint8Array({ maxLength: 3 }), isAdded: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.boolean(), (steps, areAllAlike) => {
      const table = new HotTable<HotKey>()
      const oracle = new Map<string, HotKey>()
      const hashOf = (bytes: Uint8Array) => (areAllAlike ? 5 : hashBytes(bytes, 0, bytes.length))
      for (const { key, isAdded } of steps) {
        const name = Buffer.from(key).toString('hex')
        const known = oracle.get(name)
        if (isAdded && known === undefined) {
          const hot = { bytes: key } as HotKey
          oracle.set(name, hot)
          table.add(hot, hashOf(key))
        } else if (!isAdded && known !== undefined) {
          oracle.delete(name)
          table.remove(known, hashOf(key))
        }
        const around = Buffer.concat([Buffer.from('a'), key])
        expect(table.find(around, 1, around.length, hashOf(key))).toBe(oracle.get(name))
        expect(table.size).toBe(oracle.size)
      }
    }),
  )
})
