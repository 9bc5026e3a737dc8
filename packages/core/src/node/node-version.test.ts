import { expect, test } from 'vitest'
import { tooOldNode } from './node-version.ts'

test.each(['22.13.0', '22.22.1', '23.0.0', '24.9.0', '100.0.0'])('Node %s runs a hub', (version) => {
  expect(tooOldNode('the hub', version)).toBeUndefined()
})

test.each(['18.20.8', '20.19.5', '22.9.0', '22.12.9'])('Node %s does not', (version) => {
  expect(tooOldNode('the hub', version)).toBe(`the hub needs Node 22.13 or newer; this is ${version}`)
})
