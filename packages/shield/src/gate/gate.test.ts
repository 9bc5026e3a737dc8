import type { Timers } from '@firebreak/core'
import { commandOf, ListArgs } from '@firebreak/core/commands'
import { expect, test } from 'vitest'
import type { HotKey } from '../cache/hot-key.ts'
import type { Tally } from '../status/tally.ts'
import { Trouble } from '../trouble/trouble.ts'
import type { ClusterHotKeys } from './cluster-hot-keys.ts'
import type { ConnectionFacts } from './connection-facts.ts'
import { Gate } from './gate.ts'
import type { GateRequest } from './gate-request.ts'
import { OpenState } from './open-state.ts'

/** A GET of a hot key that must not be answered from memory. */
function bypassed(isConsistent: boolean) {
  const happened: string[] = []
  const hot = {
    isServed: true,
    isConsistent,
    pendingWrites: 0,
    bypassed: () => void happened.push('bypassed'),
    overtaken: () => void happened.push('dropped'),
  } as unknown as HotKey
  const request = {
    row: commandOf('GET')!,
    args: new ListArgs(['GET', 'k']),
    visit: () => hot,
    isAnswerable: true,
    canWait: true,
  } as unknown as GateRequest
  const connection = {
    isReady: true,
    isPinned: false,
    open: new OpenState(),
    isBehind: () => true,
  } as unknown as ConnectionFacts
  const tally = { bypasses: 0 } as Tally
  return {
    happened,
    verdict: new Gate({} as ClusterHotKeys, tally, {} as Timers, new Trouble()).ask(request, connection),
  }
}

test('after a read that bypasses the memory, nothing is served that was read before its reply', () => {
  const { happened, verdict } = bypassed(true)
  expect(happened).toEqual(['bypassed'])
  if (verdict.kind !== 'guarded') expect.fail(`the verdict is ${verdict.kind}`)
  verdict.end()
  expect(happened).toEqual(['bypassed', 'dropped'])
})

test('a reply that may be old is kept, whoever bypasses it', () => {
  expect(bypassed(false)).toEqual({ happened: ['bypassed'], verdict: { kind: 'pass' } })
})
