import { systemRuntime } from '@firebreak/core'
import { RuleService } from '@firebreak/limits/policy'
import { expect, test } from 'vitest'
import { MemoryStore } from '../store/memory-store.ts'
import { PolicyKeeper } from './policy-keeper.ts'

test('a stored version that is refused now leaves the one before in force, is told, and can be replaced', async () => {
  const store = new MemoryStore()
  const told: string[] = []
  const open = async () => {
    const service = new RuleService()
    const keeper = new PolicyKeeper(service, store, systemRuntime, (error) => told.push(error.message))
    await keeper.open(undefined)
    return { service, keeper }
  }
  const first = await open()
  await first.keeper.change({ policy: first.service.policy, origin: 'good', who: 'ann' })
  const audit = { at: 0, who: 'ann', what: 'change rate-limit policy', before: null, after: null }
  await store.addPolicy({ version: 2, loadedAtMs: 0, origin: 'earlier', document: '{"rules": 7}' }, audit)
  const { service, keeper } = await open()
  expect(service.version).toBe(2)
  expect(told).toHaveLength(1)
  expect(await keeper.change({ policy: service.policy, origin: 'mended', who: 'ann', expected: 2 })).toBe(3)
  expect((await open()).service.version).toBe(3)
})
