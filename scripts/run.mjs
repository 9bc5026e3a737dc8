// Every npm script runs through this file: it prepares the clone, then runs the requested job on the right Node.
import { spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ensureNode, ensureOlderNodes, ensurePackages, ensureServers, root } from './setup.mjs'
import { testServers } from './test-servers.mjs'

const [job, ...rest] = process.argv.slice(2)
const bin = (name) => join(root, 'node_modules', '.bin', name)

ensurePackages()
const node = ensureNode()
const fromSource = ['--disable-warning=ExperimentalWarning', '--conditions=firebreak-source']

/** Runs one program to its end and returns its exit code, or 128 + n if signal n ended it. */
function run(program, args, env = {}) {
  return new Promise((resolve) => {
    const path = `${join(node, '..')}:${process.env.PATH}`
    // A short process spends most of its time stripping types and compiling, and our tests start hundreds of them.
    const NODE_COMPILE_CACHE = process.env.NODE_COMPILE_CACHE ?? join(root, 'node_modules', '.cache', 'compile')
    const environment = { ...process.env, NODE_COMPILE_CACHE, PATH: path, ...env }
    const child = spawn(program, args, { stdio: 'inherit', cwd: root, env: environment })
    // A terminal sends Ctrl-C to the whole process group; a supervisor sends SIGTERM only to this process.
    for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
    process.on('SIGINT', () => {})
    // npm passes SIGTERM to a shell that exits without passing it on. So if the parent is gone, end the child.
    const parent = process.ppid
    setInterval(() => process.ppid !== parent && child.kill('SIGTERM'), 250).unref()
    child.on('error', (error) => {
      process.stderr.write(`${program}: ${error.message}\n`)
      resolve(1)
    })
    child.on('exit', (code) => resolve(code ?? 130))
  })
}

const source = (file, args) => run(node, [...fromSource, join(root, file), ...args])

async function inOrder(...steps) {
  for (const step of steps) {
    const code = await step()
    if (code !== 0) return code
  }
  return 0
}

const typecheck = () => run(node, [bin('tsc'), '--build'])
/** Copies Lua and SQL files next to the built modules. */
const assets = () => run(node, [join(root, 'scripts/copy-assets.mjs')])
const lint = () => run(bin('biome'), ['check', '--error-on-warnings', '.'])

/** Builds the console's page if its sources are newer than the last build. */
const consolePage = () => run(node, [join(root, 'scripts/build-console.mjs')])

const jobs = {
  firebreak: () => inOrder(consolePage, () => source('packages/cli/src/main.ts', rest)),
  demo: () => source('examples/flash-sale/src/demo.ts', rest),
  build: () => inOrder(typecheck, assets, consolePage),
  pack: () => inOrder(typecheck, assets, consolePage, () => run(node, [join(root, 'scripts/pack.mjs'), ...rest])),
  docs: () => run(node, [join(root, 'scripts/docs/build.mjs'), ...rest]),
  release: () => run(node, [join(root, 'scripts/release.mjs'), ...rest]),
  suites: () => inOrder(typecheck, assets, () => source('test/suites/main.ts', rest)),
  'test:servers': () => inOrder(typecheck, assets, consolePage, () => testServers(node, rest)),
  references: () => source('test/references/write.ts', rest),
  screenshots: () => inOrder(consolePage, () => source('test/console/screenshots.ts', rest)),
  chaos: () => source('test/chaos/run-chaos.ts', rest),
  simulate: () => source('test/simulation/main.ts', rest),
  fuzz: () => run(node, ['--max-old-space-size=256', ...fromSource, join(root, 'test/fuzz/main.ts'), ...rest]),
  floods: () => source('test/security/flood-figures.ts', rest),
  check: () => inOrder(lint, typecheck),
  test: () => {
    ensureServers()
    ensureOlderNodes()
    const full = rest.includes('--full')
    const filters = rest.filter((word) => word !== '--full')
    const vitest = (words, env = {}) =>
      run(node, [bin('vitest'), 'run', ...words], full ? { ...env, FIREBREAK_FULL: '1' } : env)
    const tests =
      filters.length > 0
        ? [() => vitest(filters)]
        : ['others', 'alone'].map((part) => () => vitest([], { FIREBREAK_TESTS: part }))
    return inOrder(lint, typecheck, assets, consolePage, ...tests)
  },
  bench: () => {
    const name = rest.find((word) => !word.startsWith('-'))
    if (name === 'all') {
      const report = join(root, 'bench/harness/report.ts')
      const words = rest.filter((word) => word !== name)
      return inOrder(typecheck, assets, () => run(node, ['--expose-gc', ...fromSource, report, ...words]))
    }
    const file = `bench/${name}.ts`
    if (name === undefined || !existsSync(join(root, file))) {
      const names = readdirSync(join(root, 'bench')).filter((entry) => entry.endsWith('.ts'))
      process.stderr.write(`usage: npm run -s bench -- NAME [--quick] [--json] [--against WORKTREE [--pairs 15]]\n`)
      process.stderr.write(`       npm run bench -- all [--quick] [--only NAME,NAME] [--report [FILE]]\n`)
      process.stderr.write(`names: ${names.map((entry) => entry.slice(0, -3)).join(', ')}\n`)
      return 2
    }
    const args = rest.filter((word) => word !== name)
    const isAgainst = rest.some((word) => /^--against(=|$)/.test(word))
    const program = isAgainst ? [join(root, 'bench/harness/against.ts'), ...rest] : [join(root, file), ...args]
    // Some benchmarks measure the published packages.
    return inOrder(typecheck, assets, () => run(node, ['--expose-gc', ...fromSource, ...program]))
  },
}

if (jobs[job] === undefined) {
  process.stderr.write(`scripts/run.mjs: unknown job "${job}"; known: ${Object.keys(jobs).join(', ')}\n`)
  process.exit(2)
}
process.exit(await jobs[job]())
