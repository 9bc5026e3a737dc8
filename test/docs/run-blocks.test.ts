import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Hub, startHub } from '@firebreak/hub'
import {
  freePort,
  freePorts,
  type RedisCluster,
  type RedisSentinel,
  type RedisServer,
  sourceArgs,
  startChild,
  startCluster,
  startRedis,
  startSentinel,
  temporaryFolder,
} from '@firebreak/testkit'
import { transformWithOxc } from 'vite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { wholeOf } from './fragments.ts'
import { blocksOf, type CodeBlock, isTranslation, root, userPages } from './pages.ts'
import { excused } from './runs.ts'

const runner = fileURLToPath(new URL('./block-runner.ts', import.meta.url))
const built = join(root, 'packages/cli/dist/main.js')
// Under node_modules, where the packages are found as by an application.
const cache = join(root, 'node_modules/.cache')
mkdirSync(cache, { recursive: true })
const folder = mkdtempSync(join(cache, 'firebreak-run-'))
const work = temporaryFolder('docs-run')

let redis: RedisServer
let cluster: RedisCluster
let sentinel: RedisSentinel
let hub: Hub

beforeAll(async () => {
  const rule = { id: 'product', prefix: 'product_', threshold: 1000, windowMs: 1000, strategy: 'LocalCache' }
  const hubs = startHub({ initialRules: [rule], logLevel: 'fatal', port: 0 })
  ;[redis, cluster, sentinel, hub] = await Promise.all([startRedis(), startCluster(), startSentinel(), hubs])
}, 120_000)
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await hub?.close()
  await Promise.all([redis?.stop(), cluster?.stop(), sentinel?.stop()])
})

const isExcused = ({ place, text }: CodeBlock) =>
  excused.some(({ page, holds }) => place.startsWith(`${page}:`) && text.includes(holds))
// The code of a translation is that of its page (translations.test.ts).
const blocks = userPages()
  .filter((page) => !isTranslation(page))
  .flatMap(blocksOf)

test('every block that is excused is there', () => {
  for (const { page, holds } of excused) {
    const held = blocks.filter(({ place, text }) => place.startsWith(`${page}:`) && text.includes(holds))
    expect(held.length, `${page}: ${holds}`).toBeGreaterThan(0)
  }
})

test('every block of TypeScript and JavaScript in the pages runs, and what it makes works', async () => {
  const wanted = blocks.filter((block) => ['ts', 'js'].includes(block.language) && !isExcused(block))
  expect(wanted.length).toBeGreaterThan(20)
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  const files = await Promise.all(wanted.map(writeBlock))
  const child = startChild(process.execPath, [...sourceArgs, runner, ...files], {
    cwd: work,
    env: { ...process.env, NODE_OPTIONS: '', FIREBREAK_HUB: hub.url },
  })
  await child.exited
  const results = [...child.output().matchAll(/^(\{"file":.*\})$/gm)].map(
    ([, line]) => JSON.parse(line!) as { file: string; problem?: string },
  )
  const problems = results.filter(({ problem }) => problem !== undefined)
  expect(problems.map(({ file, problem }) => `${wanted[files.indexOf(file)]!.place}: ${problem}`)).toEqual([])
  expect(results, child.output().slice(-2000)).toHaveLength(wanted.length)
}, 240_000)

test('a block that fails, or whose client does not answer, is told', async () => {
  const wrong = { place: 'wrong.md:1', language: 'ts', text: "throw new Error('as it stands here')" }
  const child = startChild(process.execPath, [...sourceArgs, runner, await writeBlock(wrong)], { cwd: work })
  await child.exited
  expect(child.output()).toContain('as it stands here')
})

/** A block as a module with the tests' addresses, that exports what the runner looks at. */
async function writeBlock(block: CodeBlock): Promise<string> {
  const isCommonJs = block.text.includes('require(')
  const port = await freePort()
  const text = isCommonJs ? block.text : `${wholeOf(block, 'run')}\n${exportsOf(block.text, port)}`
  const typescript = addressed(text, port)
  const name = block.place.replaceAll('/', '-').replace(':', '-')
  const options = {
    lang: 'ts',
    decorator: { legacy: true },
    typescript: { onlyRemoveTypeImports: true },
    helpers: { mode: 'External' },
  } as const
  const { code } = isCommonJs ? { code: typescript } : await transformWithOxc(typescript, `${name}.ts`, options)
  const file = join(folder, `${name}.${isCommonJs ? 'cjs' : 'mjs'}`)
  writeFileSync(file, code)
  return file
}

function exportsOf(text: string, port: number): string {
  const has = (name: string) => new RegExp(`^(export )?const ${name}\\b`, 'm').test(text)
  if (text.includes('class AppModule')) {
    return `import 'reflect-metadata'
import { NestFactory } from '@nestjs/core'
const context = await NestFactory.createApplicationContext(AppModule, { logger: false })
export const made = { redis, found: await context.get(Products).find('100') }`
  }
  // One that a block disconnects itself answers no more.
  const names = ['redis', 'app', 'hub'].filter((name) => has(name) && !text.includes(`${name}.disconnect()`))
  const listens = /listen\(/.test(text) ? `, port: ${port}` : ''
  return `export const made = { ${names.join(', ')}${names.length === 0 ? '' : listens} }`
}

/** The addresses of the pages, as those of the tests' servers. */
function addressed(text: string, port: number): string {
  const nodes = cluster.addresses
  return text
    .replaceAll('127.0.0.1:6379', `127.0.0.1:${redis.port}`)
    .replaceAll('http://127.0.0.1:7070', hub.url)
    .replaceAll(/new Redis\(\)/g, `new Redis(${redis.port})`)
    .replaceAll(/createClient\(\)/g, `createClient({ url: '${redis.url}' })`)
    .replaceAll(
      /host: '10\.0\.0\.(\d)', port: 7000/g,
      (_, n) => `host: '127.0.0.1', port: ${nodes[Number(n) - 1]!.port}`,
    )
    .replaceAll(/10\.0\.0\.(\d):7000/g, (_, n) => `127.0.0.1:${nodes[Number(n) - 1]!.port}`)
    .replaceAll(
      /host: '10\.0\.0\.(\d)', port: 26379/g,
      (_, n) => `host: '127.0.0.1', port: ${sentinel.sentinels[Number(n) - 1]!.port}`,
    )
    .replaceAll("name: 'mymaster'", `name: '${sentinel.name}'`)
    .replaceAll('listen(3000)', `listen(${port})`)
    .replaceAll('port: 3000', `port: ${port}`)
    .replaceAll('port: 7070', 'port: 0')
    .replaceAll('/var/cache/shop/firebreak', join(work, 'disk-tier'))
}

/** What pages say that a reader will see. */
const promised: Readonly<Record<string, readonly RegExp[]>> = {
  'docs/guides/first-hour.md': [
    /^Safe: 1 key is hot and handled/m,
    /^product_100 .* hot +LocalCache/m,
    /tracking:live/,
  ],
  'docs/guides/other-languages.md': [/^product_100 +main /m],
  'docs/guides/three-hubs.md': [/"isDelivered":true/, /alert routes and silences.*\n(.*\n)*restored:.*alert routes/],
}

/** Pages whose shell blocks are one session: what an earlier block set or wrote is there for a later one. */
const shellPages = [...new Set(blocks.filter(isShell).map(({ place }) => place.split(':')[0]!))]

function isShell(block: CodeBlock): boolean {
  return block.language === 'sh' && !isExcused(block)
}

test.each(shellPages)(
  'the commands of %s run, block after block',
  async (page) => {
    const place = join(work, page.replaceAll('/', '-'))
    mkdirSync(join(place, 'firebreak-data'), { recursive: true })
    const [idsPort, respPort, proxyPort, ...others] = (await freePorts(9)) as [number, number, number, ...number[]]
    const local = new Map(['7071', '7072', '7073', '7090', '6390', '6391'].map((port, index) => [port, others[index]]))
    const receiver = createServer((_request, response) => response.end('ok')).listen(local.get('7090'), '127.0.0.1')
    writeShim(join(place, 'bin'))
    symlinkSync(join(root, 'node_modules'), join(place, 'node_modules'))
    for (const { language, text, place: at } of blocks) {
      // A page shows files too: those that its commands read.
      if (at.startsWith(`${page}:`) && language === 'yaml') writeFileSync(join(place, 'rules.yaml'), text)
      if (at.startsWith(`${page}:`) && text.includes('peek(redis')) {
        writeFileSync(join(place, 'app.mjs'), addressed(text, 0))
      }
    }
    const all = blocks.filter((block) => isShell(block) && block.place.startsWith(`${page}:`))
    const script = all.map(({ place: at, text }) => `echo '== ${at}'\n${text}\n`).join('\n')
    const ported = addressed(script, 0)
      .replaceAll(/http:\/\/hub-\d:7070/g, hub.url)
      .replaceAll('10.0.0.5:6379', `127.0.0.1:${redis.port}`)
      .replaceAll(':8070', `:${idsPort}`)
      .replaceAll('-p 8071', `-p ${respPort}`)
      .replaceAll('-p 6380', `-p ${proxyPort}`)
      .replaceAll('FIREBREAK_TOKEN=…', 'FIREBREAK_TOKEN=none-needed')
      .replaceAll(/\b(707[123]|7090|639[01])\b/g, (port) => String(local.get(port) ?? port))
      // What the page itself puts into the background is its own job.
      .replaceAll(/^firebreak hub (.*&)$/gm, 'SHIM_FOREGROUND=1 firebreak hub $1')
      // It reads until it is ended.
      .replaceAll(
        /^node app\.mjs$/gm,
        'node app.mjs > app.log 2>&1 &\nuntil grep -q hot, app.log; do kill -0 $! || exit 1; sleep 0.1; done',
      )
      // A busy machine may not bring four processes over a thousand reads a second.
      .replaceAll(/firebreak drill( +#)/gm, 'firebreak drill --rounds 1 --clients 2 --threshold 200$1')
      // A process says once a second how its watchers are.
      .replaceAll(
        /^(npx firebreak hosts)( +#.*tracking:live.*)$/gm,
        'until $1 | grep -q tracking:live; do kill -0 $! || exit 1; sleep 0.1; done\n$1$2',
      )
      // Without an end of its own, in a terminal that nobody watches.
      .replaceAll(/firebreak top( +#|$)/gm, 'firebreak top --once$1')
    const prelude = `set -eu -o pipefail
cleanup() { kill $(jobs -p) 2>/dev/null || :; for file in ${place}/*.pid; do [ -f "$file" ] && kill "$(cat "$file")" 2>/dev/null || :; done; }
trap cleanup EXIT
`
    writeFileSync(join(place, 'session.sh'), prelude + ported)
    const child = startChild('bash', ['session.sh'], {
      cwd: place,
      env: {
        ...process.env,
        PATH: `${join(place, 'bin')}:${process.env['PATH']}`,
        NODE_OPTIONS: '',
        FIREBREAK_HUB: hub.url,
        REDIS_URL: redis.url,
        FIREBREAK_IDS_PORT: String(idsPort),
        FIREBREAK_IDS_RESP_PORT: String(respPort),
        FIREBREAK_PROXY_PORT: String(proxyPort),
        SHIM_FOLDER: place,
        SHIM_FOREGROUND: '',
      },
    })
    expect([await child.exited, child.output().slice(-3000)]).toEqual([0, expect.anything()])
    for (const said of promised[page] ?? []) expect(child.output()).toMatch(said)
    receiver.close()
  },
  300_000,
)

/**
 * `firebreak` and `npx firebreak` as installed; what runs until it is ended is put into the background once it is ready, in
 * the place of an earlier one of its kind.
 */
function writeShim(bin: string): void {
  mkdirSync(bin, { recursive: true })
  const shim = `#!/bin/bash
[ "$1" = firebreak ] && shift
case "$SHIM_FOREGROUND$1" in
up | hub | proxy | ids)
  pid="$SHIM_FOLDER/$1.pid" log="$SHIM_FOLDER/$1.log"
  [ -f "$pid" ] && kill "$(cat "$pid")" 2>/dev/null && while kill -0 "$(cat "$pid")" 2>/dev/null; do sleep 0.05; done
  '${process.execPath}' '${built}' "$@" >"$log" 2>&1 </dev/null &
  echo $! >"$pid"
  for _ in $(seq 600); do
    grep -qE 'is up|^hub http|listens on|^ids: ' "$log" && exit 0
    kill -0 "$(cat "$pid")" 2>/dev/null || break
    sleep 0.05
  done
  cat "$log" >&2
  exit 1
  ;;
esac
exec '${process.execPath}' '${built}' "$@"
`
  symlinkSync(process.execPath, join(bin, 'node'))
  for (const name of ['firebreak', 'npx']) writeFileSync(join(bin, name), shim, { mode: 0o755 })
}
