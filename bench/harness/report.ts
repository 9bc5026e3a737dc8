// `npm run bench -- all [--quick] [--only NAME,NAME] [--report [FILE]]`: every benchmark after the other, each a process of its
// own, and their figures as one page: machine, tables, plots of what is compared, and the command of each.
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Figure } from './bench.ts'
import { drillFigures, readmeWith } from './readme-figures.ts'
import { reportPage } from './report-page.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const defaultPage = 'docs/reference/benchmarks.md'

/** What one benchmark printed. */
export interface BenchRun {
  readonly name: string
  readonly figures: readonly Figure[]
  readonly machine: Readonly<Record<string, string | number>>
  /** Undefined where it ended well. */
  readonly failure?: string
}

/** The lines of a benchmark's `--json` as figures and machine. */
export function readRun(name: string, output: string, failure?: string): BenchRun {
  const lines = output.split('\n').filter((line) => line.startsWith('{'))
  const figures: Figure[] = []
  let machine: BenchRun['machine'] = {}
  for (const line of lines) {
    const { bench: _, machine: said, ...figure } = JSON.parse(line) as { bench: string; machine?: BenchRun['machine'] }
    if (said === undefined) figures.push(figure as Figure)
    else machine = said
  }
  const cut = lines.some((line) => line.includes('"machine"')) ? failure : (failure ?? 'it ended before its last line')
  return { name, figures, machine, ...(cut !== undefined && { failure: cut }) }
}

async function runBench(name: string, flags: readonly string[]): Promise<BenchRun> {
  process.stderr.write(`bench ${name} …\n`)
  const args = [...process.execArgv, join(root, `bench/${name}.ts`), '--json', ...flags]
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  const code = await new Promise<number | null>((done) => child.on('exit', done))
  return readRun(name, output, code === 0 ? undefined : `it ended with code ${code}`)
}

/** The READMEs quote the drill's figures: whoever writes the page writes them there too, or a test fails. */
function writeReadmes(runs: readonly BenchRun[]): void {
  const figures = drillFigures(runs)
  if (figures === undefined) return
  for (const name of ['README.md', 'README.zh.md']) {
    const readme = join(root, name)
    writeFileSync(readme, readmeWith(readFileSync(readme, 'utf8'), figures))
  }
  process.stderr.write(
    'README.md and README.zh.md have the figures of the drill; now: npm run translated -- README.zh.md\n',
  )
}

async function main(words: readonly string[]): Promise<number> {
  const valueBehind = (flag: string) => {
    const at = words.indexOf(flag)
    const value = at < 0 ? undefined : words[at + 1]
    return value?.startsWith('--') ? undefined : value
  }
  const names = readdirSync(join(root, 'bench'))
    .filter((file) => file.endsWith('.ts'))
    .map((file) => basename(file, '.ts'))
  const only = valueBehind('--only')?.split(',')
  const unknown = only?.find((name) => !names.includes(name))
  if (unknown !== undefined) {
    process.stderr.write(`there is no benchmark "${unknown}"; there are ${names.join(', ')}\n`)
    return 2
  }
  const flags = words.includes('--quick') ? ['--quick'] : []
  const load = loadavg()[0]!
  const runs: BenchRun[] = []
  for (const name of only ?? names) runs.push(await runBench(name, flags))
  const page = reportPage(runs, { at: new Date(), isQuick: flags.length > 0, load })
  if (words.includes('--report')) {
    const file = resolve(root, valueBehind('--report') ?? defaultPage)
    writeFileSync(file, page)
    process.stderr.write(`written to ${file}\n`)
    if (file === resolve(root, defaultPage)) writeReadmes(runs)
  } else process.stdout.write(page)
  return runs.some(({ failure }) => failure !== undefined) ? 1 : 0
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await main(process.argv.slice(2))
