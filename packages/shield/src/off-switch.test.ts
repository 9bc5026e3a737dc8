import { afterEach, expect, test, vi } from 'vitest'
import { isOffByEnvironment } from './off-switch.ts'

afterEach(() => vi.restoreAllMocks())

test('FIREBREAK switches off by its keywords, whatever their case and surrounding spaces', () => {
  for (const word of ['off', 'OFF', ' off ', 'off\r', '0', 'false', 'No'])
    expect(isOffByEnvironment({ FIREBREAK: word }), word).toBe(true)
  for (const word of ['on', '1', '', ' yes ', 'TRUE']) expect(isOffByEnvironment({ FIREBREAK: word }), word).toBe(false)
  expect(isOffByEnvironment({})).toBe(false)
})

test('an unknown word is reported, once', () => {
  const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  for (const _ of [1, 2]) expect(isOffByEnvironment({ FIREBREAK: 'aus' })).toBe(false)
  expect(emit).toHaveBeenCalledTimes(1)
  expect(emit.mock.calls[0]![0]).toContain('"aus"')
})
