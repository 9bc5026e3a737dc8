import { expect, test } from 'vitest'
import { waitFor } from './wait-for.ts'

test('a wait that fails says what it waited for, in the condition’s own words or in those of the test', async () => {
  const hosts: string[] = []
  await expect(waitFor(() => hosts.length === 2, { timeoutMs: 1 })).rejects.toThrow(
    'waited 1 ms for hosts.length === 2',
  )
  await expect(waitFor(async () => hosts.includes('a'), { timeoutMs: 1 })).rejects.toThrow(/for hosts.includes\(.a.\)/)
  await expect(waitFor(() => false, { timeoutMs: 1, what: () => `${hosts.length} hosts` })).rejects.toThrow(
    'for 0 hosts',
  )
})
