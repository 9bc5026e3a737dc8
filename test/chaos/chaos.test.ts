import { isFullRun } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { runChaos } from './chaos.ts'

test('real processes, servers and sockets break for a while, and every promise holds', async () => {
  const seed = Number(process.env['FIREBREAK_CHAOS_SEED'] ?? 25)
  const forMs = isFullRun ? 300_000 : 45_000
  const { violations, calls, faults } = await runChaos({ seed, forMs })
  expect(violations).toEqual([])
  expect(faults).toBeGreaterThan(forMs / 5000)
  expect(calls).toBeGreaterThan(forMs / 10)
}, 600_000)
