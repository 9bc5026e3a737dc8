// From an empty folder to a protected key seen in the console, as the page "First hour" has it, with the minutes. For each
// Node that the library runs on, as ESM, CommonJS and TypeScript:
//
//   node --conditions=firebreak-source test/packages/transcript.ts [20|22|24] [esm|cjs|ts]
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePorts, type GuardedChild, startChild, temporaryFolder, waitFor } from '@firebreak/testkit'
import type { Browser } from 'playwright-core'
import { startBrowser } from '../console/browser.ts'
import { environmentOf, nodes, packAndServe, type Release, root, tsc } from './installing.ts'

export const forms = ['esm', 'cjs', 'ts'] as const
export type Form = (typeof forms)[number]

export interface Walk {
  readonly node: { readonly major: number; readonly program: string }
  readonly form: Form
  readonly release: Release
  readonly browser: Browser
  readonly say: (line: string) => void
}

/** Takes one way through the page; the minutes from the empty folder to the key in the console. */
export async function walk({ node, form, release, browser, say }: Walk): Promise<number> {
  const startedAt = performance.now()
  const tell = (line: string) => say(`${((performance.now() - startedAt) / 60_000).toFixed(2)} min  ${line}`)
  const place = temporaryFolder(`walk-${node.major}-${form}`)
  const cache = join(place, 'npm-cache')
  const env = environmentOf(node.program, release.registry, cache)
  const children: GuardedChild[] = []
  const run = async (words: string, cwd: string, own = env): Promise<string> => {
    const [program, ...args] = words.split(' ') as [string, ...string[]]
    const child = startChild(program, args, { cwd, env: own })
    if ((await child.exited) !== 0) throw new Error(`${words} failed:\n${child.output()}`)
    tell(`$ ${words}`)
    return child.output()
  }
  try {
    const app = join(place, 'app')
    mkdirSync(app)
    tell(`an empty folder; Node ${(await run('node --version', app)).trim()}, ${form}`)
    await run('npm init -y', app)
    const types = form === 'ts' ? ' typescript @types/node' : ''
    await run(`npm install --engine-strict firebreak ioredis${types}`, app)
    // Hub and command need a newer Node than the library: next to Node 20 they run on another one, in their own folder.
    const server = node.major < 22 ? nodes.at(-1)! : node
    const serverFolder = server === node ? app : join(place, 'hub')
    const [port, proxyPort] = (await freePorts(2)) as [number, number]
    const serverEnv = {
      ...environmentOf(server.program, release.registry, cache),
      FIREBREAK_PORT: String(port),
      FIREBREAK_PROXY_PORT: String(proxyPort),
    }
    if (serverFolder !== app) {
      mkdirSync(serverFolder)
      await run('npm init -y', serverFolder, serverEnv)
      await run('npm install --engine-strict firebreak', serverFolder, serverEnv)
    }
    const up = startChild('npx', ['firebreak', 'up'], { cwd: serverFolder, env: serverEnv })
    children.push(up)
    const [, redisUrl] = await up.printed(/new Redis\('(redis:[^']+)'/, 120_000)
    tell(`$ npx firebreak up   (on Node ${server.major}) → console http://127.0.0.1:${port}, ${redisUrl}`)
    const code = pageCode(form)
      .replaceAll('redis://127.0.0.1:6379', redisUrl!)
      .replaceAll('http://127.0.0.1:7070', `http://127.0.0.1:${port}`)
    const file = { esm: 'app.mjs', cjs: 'app.cjs', ts: 'app.mts' }[form]
    writeFileSync(join(app, file), code)
    if (form === 'ts') {
      await run(`node ${tsc} --module nodenext --target es2022 --types node --strict ${file}`, app)
    }
    const protectedApp = startChild('node', [file.replace('.mts', '.mjs')], { cwd: app, env })
    children.push(protectedApp)
    const [said] = await protectedApp.printed(/^hot, and answered from memory.*/m, 120_000)
    tell(`$ node ${file.replace('.mts', '.mjs')}   → ${said}`)
    const page = await browser.newPage({ locale: 'en-US' })
    await page.goto(`http://127.0.0.1:${port}/#/keys`)
    const row = page.locator('tr', { hasText: 'product_100' }).first()
    await waitFor(async () => (await row.count()) > 0 && (await row.innerText()).includes('LocalCache'), {
      timeoutMs: 60_000,
      what: 'the key in the console',
    })
    tell(`console, Hot keys: ${(await row.innerText()).replace(/\s+/g, ' ').trim()}`)
    await page.close()
    return (performance.now() - startedAt) / 60_000
  } finally {
    for (const child of children.reverse()) await child.stop()
  }
}

/** The code of the page, as a reader of each form writes it. */
function pageCode(form: Form): string {
  const guide = readFileSync(join(root, 'docs/guides/first-hour.md'), 'utf8')
  const code = guide.match(/```js\n(import \{ peek, protect \}[\s\S]*?)```/)![1]!
  if (form !== 'cjs') return code
  const required = code.replaceAll(/^import (\{.*\}) from '(.*)'$/gm, "const $1 = require('$2')")
  const [first, second, ...rest] = required.split('\n')
  return [first, second, 'async function main() {', ...rest, '}', 'main()'].join('\n')
}

async function main([major, form]: readonly string[]): Promise<void> {
  const release = await packAndServe(temporaryFolder('transcript'))
  const browser = await startBrowser()
  const say = (line: string) => void process.stdout.write(`${line}\n`)
  const totals: string[] = []
  try {
    for (const node of nodes.filter((one) => major === undefined || String(one.major) === major)) {
      for (const one of forms.filter((name) => form === undefined || name === form)) {
        const minutes = await walk({ node, form: one, release, browser, say })
        totals.push(`Node ${node.major} ${one}: ${minutes.toFixed(1)} min`)
        say('')
      }
    }
    say(totals.join('\n'))
  } finally {
    await browser.close()
    await release.registry.stop()
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2))
