import type { Figure } from './bench.ts'
import { isLowerBetter } from './compare-figure.ts'
import type { BenchRun } from './report.ts'

/** When and how the benchmarks were run. */
export interface ReportSettings {
  readonly at: Date
  readonly isQuick: boolean
  /** How busy the machine was before the first. */
  readonly load: number
}

/** The figures of all benchmarks as a page of Markdown. */
export function reportPage(runs: readonly BenchRun[], { at, isQuick, load }: ReportSettings): string {
  const machine = runs.find(({ figures }) => figures.length > 0)?.machine ?? {}
  const mode = isQuick ? 'Quick runs: good for the order of magnitude.' : 'Whole runs.'
  const failed = runs.filter(({ failure }) => failure !== undefined)
  return `# Benchmarks

Written by \`npm run bench -- all --report${isQuick ? ' --quick' : ''}\` on ${at.toISOString().slice(0, 10)}; do not edit. ${mode}

| | |
|---|---|
| processor | ${machine['cpu'] ?? 'unknown'}, ${machine['cores'] ?? '?'} cores |
| Node | ${machine['node'] ?? 'unknown'} |
| load before | ${load.toFixed(1)}${load > 1 ? ' (other programs were running: absolute figures are too low)' : ''} |

A ratio compares two things measured in the same run, in turns. Bars show ratios: the mark is 1, where both are equal.
${failed.length === 0 ? '' : `\nNot complete: ${failed.map(({ name, failure }) => `\`${name}\` (${failure})`).join(', ')}.\n`}
${runs.map(sectionOf).join('\n')}`
}

function sectionOf({ name, figures, machine }: BenchRun): string {
  const versions = Object.entries(machine).filter(([field]) => !['node', 'cpu', 'cores'].includes(field))
  const rows = figures.map(
    (figure) => `| \`${figure.id}\` | ${amountOf(figure)} | ${barOf(figure)} | ${cell(figure.note)} |`,
  )
  return `## ${name}

\`npm run -s bench -- ${name}\`${versions.length === 0 ? '' : `, with ${versions.map(([field, value]) => `${field} ${value}`).join(', ')}`}

| figure | value | | note |
|---|--:|---|---|
${rows.join('\n')}
`
}

function amountOf(figure: Figure): string {
  if ('ratio' in figure) return `${short(figure.ratio)} × (${cell(figure.of)} to ${cell(figure.to)})`
  return `${short(figure.value)} ${cell(figure.unit)}`
}

/** A ratio as a bar of blocks, which every reader of Markdown shows: ten blocks are 2, the mark after five is 1. */
function barOf(figure: Figure): string {
  if (!('ratio' in figure) || !Number.isFinite(figure.ratio)) return ''
  const filled = Math.max(0, Math.min(10, Math.round(figure.ratio * 5)))
  const blocks = '█'.repeat(filled) + '░'.repeat(10 - filled)
  return `\`${blocks.slice(0, 5)}|${blocks.slice(5)}\`${isLowerBetter(figure) ? ' less is better' : ''}`
}

function short(value: number): string {
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US')
  return String(Number(value.toPrecision(3)))
}

function cell(text: string | undefined): string {
  return (text ?? '').replaceAll('|', '\\|').replaceAll('\n', ' ')
}
