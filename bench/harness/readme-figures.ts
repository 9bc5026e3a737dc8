import type { BenchRun } from './report.ts'

/** The figures that a README quotes: those of the benchmark `drill`, by their ids. */
export type DrillFigures = ReadonlyMap<string, number>

/** The drill's figures of a run; undefined where it was not run, or not to its end. */
export function drillFigures(runs: readonly BenchRun[]): DrillFigures | undefined {
  const run = runs.find(({ name, failure }) => name === 'drill' && failure === undefined)
  if (run === undefined) return undefined
  return new Map(run.figures.flatMap((figure) => ('value' in figure ? [[figure.id, figure.value]] : [])))
}

/** The drill's figures as a page of benchmarks has them; undefined where it has none. */
export function drillFiguresOfPage(page: string): DrillFigures | undefined {
  const section = page.match(/^## drill\n([\s\S]*?)(?=^## |$(?![\s\S]))/m)?.[1]
  if (section === undefined) return undefined
  const rows = section.matchAll(/^\| `([\w-]+)` \| ([\d.,]+) /gm)
  return new Map(Array.from(rows, ([, id, value]) => [id!, Number(value!.replaceAll(',', ''))]))
}

const whole = (value: number) => String(Math.round(value))
const precise = (value: number) => value.toFixed(1)

/** A README, in either language, with these figures in the place of those that it quotes. */
export function readmeWith(readme: string, figures: DrillFigures): string {
  const of = (id: string): number => {
    const value = figures.get(id)
    if (value === undefined) throw new Error(`the benchmark drill has no figure ${id}`)
    // As the page has it, or rounding twice would make two figures of one.
    return value >= 1000 ? Math.round(value) : Number(value.toPrecision(3))
  }
  const rows = [
    ...['detected', 'delivered', 'served-from-memory'].map((id) => [whole(of(`${id}-p50`)), whole(of(`${id}-max`))]),
    [precise(of('write-seen-p50')), precise(of('write-seen-p99'))],
  ]
  const [before, after] = ['redis-gets-before', 'redis-gets-after'].map((id) =>
    Math.round(of(id)).toLocaleString('en-US'),
  )
  let row = 0
  return replaced(readme, [
    [/drill --rounds \d+/, () => `drill --rounds ${of('rounds')}`],
    [/(worst of )\d+|\d+( 次中最差)/, (_all, en = '', zh = '') => `${en}${of('rounds')}${zh}`],
    [
      /^(\| (?:crossed|越过阈值|a plain client|普通客户端)[^|]*\| )[\d.]+ \| [\d.]+/gm,
      (_all, head) => {
        const [p50, worst] = rows[row++] ?? []
        if (worst === undefined) throw new Error('the README has more rows of figures than the drill')
        return `${head}${p50} | ${worst}`
      },
    ],
    [
      /(from |从每秒 )[\d,]+( a second to | 次降到 )[\d,]+/,
      (_all, start, middle) => `${start}${before}${middle}${after}`,
    ],
  ])
}

/** Every pattern must be there: a README that says it in other words would keep its old figures. */
function replaced(
  text: string,
  changes: readonly (readonly [RegExp, (...groups: (string | undefined)[]) => string])[],
): string {
  return changes.reduce((done, [pattern, change]) => {
    if (done.search(pattern) < 0) throw new Error(`the README has nothing like ${pattern}`)
    return done.replace(pattern, change as (...groups: string[]) => string)
  }, text)
}
