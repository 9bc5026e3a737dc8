import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Figure } from './bench.ts'
import { median } from './bench.ts'
import { compareFigure, isLowerBetter } from './compare-figure.ts'

/**
 * `npm run -s bench -- NAME --against WORKTREE [--pairs 15] [--json]`: the benchmark of this tree and of another one,
 * turn by turn, with a verdict for each figure.
 *
 * A pair is one quick run of each tree's own benchmark, the order changing from pair to pair; speeds are by CPU time
 * (`--cpu`) where the work is this process' own. A figure is worse when the
 * 95 % interval of its change lies wholly beyond 3 %; then the command ends with 1. Other options go to both runs.
 */
const here = resolve(fileURLToPath(new URL('../..', import.meta.url)))
const words = process.argv.slice(2)

function option(name: string): string | undefined {
  const at = words.findIndex((word) => word === `--${name}` || word.startsWith(`--${name}=`))
  if (at < 0) return undefined
  const [found] = words.splice(at, 1)
  return found!.includes('=') ? found!.slice(found!.indexOf('=') + 1) : words.splice(at, 1)[0]
}

function stop(text: string): never {
  process.stderr.write(`${text}\n`)
  process.exit(2)
}

const other = resolve(process.env['INIT_CWD'] ?? here, option('against') ?? '')
const pairs = Number(option('pairs') ?? 15)
const isJson = words.includes('--json')
const name =
  words.find((word) => !word.startsWith('-')) ?? stop('Name a benchmark: npm run -s bench -- NAME --against WORKTREE')
const passed = words.filter((word) => word !== name && word !== '--json' && word !== '--quick')

if (!existsSync(join(other, 'bench', `${name}.ts`)))
  stop(`${other} has no bench/${name}.ts. Name the folder of a checkout.`)
if (!existsSync(join(other, 'packages/core/dist'))) stop(`${other} is not built. Run "npm run build" there first.`)
if (!(Number.isInteger(pairs) && pairs >= 2)) stop('--pairs takes a whole number from 2 on.')

/** One quick run in a tree: its figures. */
function runIn(tree: string): Promise<Map<string, Figure>> {
  const flags = ['--expose-gc', '--disable-warning=ExperimentalWarning', '--conditions=firebreak-source']
  const args = [...flags, join(tree, 'bench', `${name}.ts`), '--quick', '--json', '--cpu', ...passed]
  const child = spawn(process.execPath, args, { cwd: tree, stdio: ['ignore', 'pipe', 'ignore'] })
  let text = ''
  child.stdout.on('data', (chunk) => {
    text += chunk
  })
  return new Promise((done, failed) => {
    child.on('error', failed)
    child.on('exit', (code) => {
      if (code !== 0) return failed(new Error(`bench ${name} in ${tree} ended with ${code}`))
      const figures = new Map<string, Figure>()
      for (const line of text.split('\n').filter(Boolean)) {
        const figure = JSON.parse(line) as Figure & { machine?: unknown }
        if (figure.machine === undefined) figures.set(figure.id, figure)
      }
      done(figures)
    })
  })
}

const results = new Map<string, { figure: Figure; ours: number[]; base: number[] }>()
const figureValue = (figure: Figure): number => ('ratio' in figure ? figure.ratio : figure.value)

for (let pair = 0; pair < pairs; pair++) {
  process.stderr.write(`pair ${pair + 1} of ${pairs}\n`)
  const order = pair % 2 === 0 ? [here, other] : [other, here]
  const runs = new Map<string, Map<string, Figure>>()
  for (const tree of order) runs.set(tree, await runIn(tree))
  for (const [id, figure] of runs.get(here)!) {
    const base = runs.get(other)!.get(id)
    if (base === undefined) continue
    const row = results.get(id) ?? { figure, ours: [], base: [] }
    row.ours.push(figureValue(figure))
    row.base.push(figureValue(base))
    results.set(id, row)
  }
}

let anyWorse = false
const percent = (share: number): string => `${share >= 0 ? '+' : ''}${(share * 100).toFixed(1)} %`
for (const [id, { figure, ours, base }] of results) {
  const change = compareFigure(ours, base, isLowerBetter(figure))
  anyWorse ||= change.isWorse
  const row = { bench: name, id, ours: median(ours), base: median(base), ...change }
  if (isJson) process.stdout.write(`${JSON.stringify(row)}\n`)
  else {
    const interval = `${percent(change.low)} to ${percent(change.high)}`
    const verdict = change.isWorse ? 'WORSE' : 'ok'
    process.stdout.write(
      `${id.padEnd(36)} ${row.base.toPrecision(4).padStart(10)} → ${row.ours.toPrecision(4).padStart(10)}  worse by ${percent(change.worseBy)} (95 %: ${interval})  ${verdict}\n`,
    )
  }
}
process.exit(anyWorse ? 1 : 0)
