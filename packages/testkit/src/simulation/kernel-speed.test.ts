import { expect, test } from 'vitest'
import { kernelSpeedText, measureKernel } from './kernel-speed.ts'

test('a simulation is fast enough to run thousands of seeds', async () => {
  const speed = await measureKernel(0.3)
  console.log(kernelSpeedText(speed))
  // A tenth of what was measured: this finds a drain that became slow, not a busy machine.
  expect(speed.commandsOneByOne).toBeGreaterThan(5000)
  expect(speed.callsOverNetwork).toBeGreaterThan(1500)
  expect(speed.newServerMs).toBeLessThan(150)
})
