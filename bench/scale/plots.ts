import { plan, type Sample, type ScaleResult } from './scale-run.ts'

const width = 900
const chartHeight = 130
const left = 64
const right = 170
const colours = ['#c2410c', '#1d4ed8', '#15803d', '#7e22ce', '#0f766e', '#a16207']

interface Chart {
  readonly title: string
  readonly of: (sample: Sample) => number
  readonly unit: string
}

const charts: readonly Chart[] = [
  { title: 'Busiest hub, share of a core', of: ({ busiest }) => busiest, unit: '' },
  { title: 'Longest wait of a frame at a hub', of: ({ delayMs }) => delayMs, unit: ' ms' },
  { title: 'To and from all hubs', of: (s) => (s.bytesInPerSecond + s.bytesOutPerSecond) / 1e6, unit: ' MB/s' },
  { title: 'Commands on the hubs’ Redis', of: (s) => s.storeCallsPerSecond / 1000, unit: ' k/s' },
  { title: 'The hubs’ Redis, share of its core', of: ({ storeLoad }) => storeLoad, unit: '' },
]

export function nameOf({ size }: ScaleResult): string {
  return `${size.sensors.toLocaleString('en-US')} sensors, ${size.hubs} hubs`
}

/** One curve for each size, one chart for each figure, over the time of the plan. */
export function scalePlot(results: readonly ScaleResult[]): string {
  const height = 50 + charts.length * (chartHeight + 40)
  const xOf = (atMs: number): number => left + ((width - left - right) * atMs) / plan.endMs
  const parts = charts.flatMap((chart, row) => {
    const top = 50 + row * (chartHeight + 40)
    const most = Math.max(1e-9, ...results.flatMap(({ samples }) => samples.map(chart.of)))
    const yOf = (value: number): number => top + chartHeight * (1 - value / most)
    return [
      `<text x="${left}" y="${top - 8}" font-weight="bold">${chart.title}</text>`,
      `<rect x="${left}" y="${top}" width="${width - left - right}" height="${chartHeight}" fill="none" stroke="#ccc"/>`,
      `<text x="${left - 6}" y="${top + 10}" text-anchor="end">${Number(most.toPrecision(3))}${chart.unit}</text>`,
      `<text x="${left - 6}" y="${top + chartHeight}" text-anchor="end">0</text>`,
      ...results.map(({ samples }, index) => {
        const points = samples.map((sample) => `${xOf(sample.atMs).toFixed(1)},${yOf(chart.of(sample)).toFixed(1)}`)
        return `<polyline points="${points.join(' ')}" fill="none" stroke="${colours[index % colours.length]}" stroke-width="1.5"/>`
      }),
    ]
  })
  const marks = Object.entries({
    crowd: plan.flashMs,
    'hub lost': plan.hubLostMs,
    'region cut': plan.cutMs,
    'region back': plan.cutMs + plan.cutForMs,
  })
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">`,
    '<title>A flash crowd, a lost hub and a region that is cut off, by size of the fleet</title>',
    `<rect width="${width}" height="${height}" fill="white"/>`,
    ...marks.map(
      ([name, atMs]) =>
        `<line x1="${xOf(atMs)}" y1="30" x2="${xOf(atMs)}" y2="${height - 10}" stroke="#999" stroke-dasharray="2 3"/><text x="${xOf(atMs)}" y="24" text-anchor="middle">${name}, ${atMs / 1000} s</text>`,
    ),
    ...results.map(
      (result, index) =>
        `<text x="${width - right + 10}" y="${64 + index * 16}" fill="${colours[index % colours.length]}">${nameOf(result)}</text>`,
    ),
    ...parts,
    '</svg>',
  ].join('\n')}\n`
}
