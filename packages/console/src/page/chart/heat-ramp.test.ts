import { expect, test } from 'vitest'
import { heatColour, heatPart, luminance } from './heat-ramp.ts'

const parts = Array.from({ length: 101 }, (_, index) => index / 100)

/** Colours as somebody without red or green cones sees them (Viénot 1999), in linear light. */
function withoutCones([red, green, blue]: readonly [number, number, number], kind: 'protan' | 'deutan') {
  const linear = [red, green, blue].map((channel) => (channel / 255) ** 2.2)
  const mixed =
    kind === 'protan' ? 0.11238 * linear[0]! + 0.88762 * linear[1]! : 0.29275 * linear[0]! + 0.70725 * linear[1]!
  const back = (part: number) => Math.min(255, Math.max(0, part) ** (1 / 2.2) * 255)
  return [back(mixed), back(mixed), back(linear[2]!)] as const
}

test.each([true, false])(
  'dark ground %s: lightness rises or falls without a turn, in grey and for the colour-blind',
  (isDark) => {
    for (const seen of [
      (colour: readonly [number, number, number]) => luminance(colour),
      (colour: readonly [number, number, number]) => luminance(withoutCones(colour, 'protan')),
      (colour: readonly [number, number, number]) => luminance(withoutCones(colour, 'deutan')),
    ]) {
      const light = parts.map((part) => seen(heatColour(part, isDark)) * (isDark ? 1 : -1))
      for (let index = 1; index < light.length; index++) {
        expect(light[index]! - light[index - 1]!, `at ${index}`).toBeGreaterThan(-0.004)
      }
      expect(light.at(-1)! - light[0]!).toBeGreaterThan(0.6)
    }
  },
)

test('a hundredth of the hottest is still seen, nothing is nothing', () => {
  expect(heatPart(0, 100)).toBe(0)
  expect(heatPart(100, 100)).toBeCloseTo(1)
  expect(heatPart(1, 100)).toBeGreaterThan(0.1)
})
