/**
 * Colours of heat. Lightness alone carries the value, falling on a light ground and rising on a dark one, so that the map
 * reads in grey and for every kind of colour blindness; the hue, yellow to red to violet, only helps.
 */
type Colour = readonly [red: number, green: number, blue: number]

const light: readonly Colour[] = [
  [252, 246, 225],
  [250, 214, 130],
  [240, 152, 70],
  [212, 80, 70],
  [148, 32, 96],
  [66, 10, 80],
]
const dark: readonly Colour[] = [
  [24, 22, 36],
  [70, 24, 92],
  [150, 40, 100],
  [220, 86, 62],
  [248, 170, 70],
  [252, 250, 190],
]

/** The colour of a part of the hottest, 0 to 1. */
export function heatColour(part: number, isDark: boolean): Colour {
  const ramp = isDark ? dark : light
  const at = Math.min(1, Math.max(0, part)) * (ramp.length - 1)
  const index = Math.min(ramp.length - 2, Math.floor(at))
  const [from, to] = [ramp[index]!, ramp[index + 1]!]
  const mix = (channel: 0 | 1 | 2) => Math.round(from[channel] + (to[channel] - from[channel]) * (at - index))
  return [mix(0), mix(1), mix(2)]
}

/** Heat spans decades: a key of a hundredth of the hottest is still to be seen. */
export function heatPart(value: number, top: number): number {
  return value <= 0 || top <= 0 ? 0 : Math.log1p((value / top) * 99) / Math.log(100)
}

/** Lightness as eyes weigh it, 0 to 1 (WCAG's relative luminance). */
export function luminance([red, green, blue]: Colour): number {
  const linear = (channel: number) => {
    const part = channel / 255
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  }
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}
