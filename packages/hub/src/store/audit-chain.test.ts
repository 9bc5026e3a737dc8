import type { AuditEntry } from '@firebreak/core'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  AuditCheck,
  type AuditCheckOptions,
  type ChainedEntry,
  chainEntry,
  formatHead,
  parseHead,
} from './audit-chain.ts'

/** A chain of so many entries, newest first. */
function chainOf(count: number): ChainedEntry[] {
  const entries: ChainedEntry[] = []
  for (let index = 0; index < count; index++) {
    const entry = { at: index, who: 'ann', what: `change ${index}`, before: null, after: { index } }
    entries.unshift(chainEntry(entries[0], entry))
  }
  return entries
}

function check(entries: readonly AuditEntry[], options: Partial<AuditCheckOptions> = {}) {
  const head = 'head' in options ? options.head : (entries[0] as ChainedEntry)
  const walk = new AuditCheck({ kept: 1000, ...options, head })
  for (const entry of entries) walk.add(entry)
  return walk.end()
}

const kindsOf = (verdict: ReturnType<typeof check>) => verdict.faults.map(({ kind, seq }) => `${kind} ${seq}`)

describe('a chain', () => {
  test('is whole as it was written, also after a trip through JSON', () => {
    expect(check(JSON.parse(JSON.stringify(chainOf(5))) as AuditEntry[])).toMatchObject({ count: 5, faults: [] })
  })

  test.each(['at', 'who', 'what', 'before', 'after', 'previous', 'hash', 'seq'] as const)(
    'shows that the %s of an entry was altered',
    (field) => {
      const entries: AuditEntry[] = chainOf(5)
      const value = typeof entries[2]![field] === 'number' ? 7 : 'other'
      entries[2] = { ...entries[2]!, [field]: value }
      expect(check(entries, { head: chainOf(5)[0]! }).faultCount).toBeGreaterThan(0)
    },
  )

  test('shows an entry that was altered together with its hash', () => {
    const entries = chainOf(5)
    entries[2] = chainEntry(entries[3], { ...entries[2]!, who: 'bob' })
    expect(kindsOf(check(entries))).toEqual(['altered 3'])
  })

  test('shows removed entries in the middle, at the new end and at the old end', () => {
    const [five, four, three, two, one] = chainOf(5) as [AuditEntry, ChainedEntry, AuditEntry, AuditEntry, AuditEntry]
    const head = five as ChainedEntry
    expect(kindsOf(check([five, four, two, one], { head }))).toEqual(['missing 3'])
    expect(kindsOf(check([four, three, two, one], { head }))).toEqual(['missing 5'])
    expect(kindsOf(check([five, four, three], { head }))).toEqual(['missing 2'])
    expect(kindsOf(check([], { head }))).toEqual(['missing 5'])
  })

  test('shows entries that changed places, and one that was put in', () => {
    const [five, four, three, two, one] = chainOf(5) as [AuditEntry, AuditEntry, AuditEntry, AuditEntry, AuditEntry]
    expect(kindsOf(check([five, three, four, two, one]))).toEqual(['missing 4', 'out-of-order 4'])
    const plain = { at: 1, who: 'eve', what: 'nothing', before: null, after: null }
    expect(kindsOf(check([five, four, plain, three, two, one]))).toEqual(['unchained 3'])
    expect(kindsOf(check([five, four, three, three, two, one]))).toEqual(['out-of-order 3'])
  })

  test('takes what a store has let go for that only where the store is full', () => {
    const newest = chainOf(8).slice(0, 3)
    expect(check(newest, { kept: 3 })).toMatchObject({ trimmed: 5, faults: [] })
    expect(kindsOf(check(newest, { kept: 4 }))).toEqual(['missing 5'])
  })

  test('takes entries of versions without a chain at its old end only where it begins there', () => {
    const legacy = { at: 1, who: 'ann', what: 'before', before: null, after: null }
    expect(check([...chainOf(2), legacy])).toMatchObject({ unchained: 1, faults: [] })
    expect(check([legacy], { head: undefined })).toMatchObject({ unchained: 1, faults: [] })
    const stripped = chainOf(3).map(({ seq, previous, hash, ...entry }, index) =>
      index === 0 ? { ...entry, seq, previous, hash } : entry,
    )
    expect(check(stripped, { head: chainOf(3)[0]! }).faultCount).toBeGreaterThan(0)
  })

  test('computed anew from an altered entry on is found by a head that was noted', () => {
    const before = chainOf(5)
    const noted = parseHead(formatHead(before[1]!))
    const forged = chainOf(2)
    for (const what of ['forged', 'change 3', 'change 4'])
      forged.unshift(chainEntry(forged[0], { ...before[0]!, what }))
    expect(check(forged).faults).toEqual([])
    expect(kindsOf(check(forged, { since: noted }))).toEqual(['head 4'])
    expect(kindsOf(check(chainOf(3), { since: noted }))).toEqual(['head 4'])
    expect(check(before, { since: noted }).faults).toEqual([])
  })

  test('of any content keeps its hashes on the way through a store', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), fc.jsonValue(), (who, what, after) => {
        const entry = chainEntry(undefined, { at: 1, who, what, before: undefined, after })
        return check([JSON.parse(JSON.stringify(entry)) as AuditEntry]).faultCount === 0
      }),
    )
  })
})
