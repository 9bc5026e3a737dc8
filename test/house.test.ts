import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { version } from '@firebreak/core'
import { expect, test } from 'vitest'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')

/** Which rooms a room may import; the same table as in docs/guides/architecture.md. */
const arrows: Record<string, readonly string[]> = {
  core: [],
  redis: ['core'],
  centre: ['core'],
  limits: ['core', 'redis'],
  locks: ['core', 'redis'],
  ids: ['core', 'redis', 'centre'],
  sale: ['core', 'redis', 'ids', 'limits'],
  shield: ['core', 'redis', 'limits', 'centre'],
  client: ['core', 'redis', 'shield'],
  proxy: ['core', 'redis', 'limits', 'shield'],
  watch: ['core'],
  find: ['core'],
  hub: ['core', 'redis', 'limits', 'locks', 'ids', 'watch', 'find', 'centre'],
  console: ['core'],
  testkit: ['core'],
}
arrows['cli'] = Object.keys(arrows).filter((room) => room !== 'testkit')

/** Parts of a room that only need its interface. */
const onlyTypes: Record<string, readonly string[]> = { shield: ['redis'], proxy: ['redis'], console: ['core'] }

interface SourceFile {
  readonly path: string
  readonly imports: readonly { readonly from: string; readonly isType: boolean }[]
}

const importPattern =
  /(?:^|\n)\s*(?:import|export)\s+(type\s+)?(?:[^'"`;]*?\sfrom\s+)?['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)/g

function sourcesOf(room: string): SourceFile[] {
  const folder = join(root, 'packages', room, 'src')
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => {
      const path = join(folder, file)
      const text = readFileSync(path, 'utf8')
      const imports = [...text.matchAll(importPattern)].map((match) => ({
        from: (match[2] ?? match[3])!,
        isType: match[1] !== undefined,
      }))
      return { path, imports }
    })
}

const isTestFile = (path: string) => /\.test(-[a-z]+)?\.tsx?$/.test(path) || path.includes('/testing/')

function roomOf(specifier: string): string | undefined {
  const name = specifier.match(/^@firebreak\/([a-z]+)/)?.[1]
  return name ?? (specifier === 'firebreak' ? 'cli' : undefined)
}

const rooms = readdirSync(join(root, 'packages'))

test('every package has the version that the programs print', () => {
  const manifests = ['.', ...rooms.map((room) => join('packages', room))].map(
    (folder) => JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as { version: string },
  )
  expect(new Set(manifests.map((manifest) => manifest.version))).toEqual(new Set([version]))
})

test('every room is in the table', () => {
  expect(rooms.filter((room) => arrows[room] === undefined)).toEqual([])
})

test.each(rooms)('%s imports only the rooms in its row', (room) => {
  const wrong: string[] = []
  for (const file of sourcesOf(room)) {
    const isTest = isTestFile(file.path)
    for (const { from, isType } of file.imports) {
      const target = roomOf(from)
      if (target !== undefined) {
        const isAllowed = arrows[room]!.includes(target) || (isTest && target === 'testkit')
        const isInterfaceOnly = onlyTypes[room]?.includes(target) && !isTest && room !== 'console'
        if (!isAllowed || (isInterfaceOnly && !isType)) wrong.push(`${relative(root, file.path)} imports ${from}`)
      } else if (from.startsWith('.')) {
        const isInside = resolve(dirname(file.path), from).startsWith(`${join(root, 'packages', room)}/`)
        if (!isInside) wrong.push(`${relative(root, file.path)} reaches out of its room: ${from}`)
      }
    }
  }
  expect(wrong).toEqual([])
})

test('core needs only the language: no node: module, no package', () => {
  // `@firebreak/core/node` is an entry of its own: Node's sockets, which a browser never loads.
  const forNode = join(root, 'packages/core/src/node/')
  const wrong = sourcesOf('core')
    .filter(({ path }) => !path.endsWith('.test.ts'))
    .flatMap(({ path, imports }) =>
      imports
        .filter(({ from }) => {
          if (from.startsWith('.')) return !path.startsWith(forNode) && resolve(dirname(path), from).startsWith(forNode)
          return !(path.startsWith(forNode) && from.startsWith('node:'))
        })
        .map(({ from }) => `${relative(root, path)} imports ${from}`),
    )
  expect(wrong).toEqual([])
})

test('each exported class, interface and type has a unique name', () => {
  const places = new Map<string, string[]>()
  for (const { path } of rooms.flatMap((room) => sourcesOf(room))) {
    if (isTestFile(path)) continue
    const names = readFileSync(path, 'utf8').matchAll(
      /^export (?:declare )?(?:abstract )?(?:class|interface|type|enum) (\w+)/gm,
    )
    for (const [, name] of names) places.set(name!, [...(places.get(name!) ?? []), relative(root, path)])
  }
  const twice = [...places].filter(([, files]) => files.length > 1)
  expect(twice.map(([name, files]) => `${name}: ${files.join(', ')}`)).toEqual([])
})

/** Packages whose files have no import cycles, types included: each can be read without those that use it. */
const oneWay: readonly string[] = ['proxy']

test.each(rooms)('%s has no cycle of imports between its files', (room) => {
  const graph = new Map<string, string[]>()
  for (const { path, imports } of sourcesOf(room)) {
    graph.set(
      path,
      imports
        .filter(({ from, isType }) => from.startsWith('.') && (!isType || oneWay.includes(room)))
        .map(({ from }) => resolve(dirname(path), from)),
    )
  }
  const state = new Map<string, 'open' | 'done'>()
  const cycles: string[] = []
  const visit = (path: string, way: string[]): void => {
    if (state.get(path) === 'done') return
    if (state.get(path) === 'open') {
      cycles.push([...way.slice(way.indexOf(path)), path].map((file) => relative(root, file)).join(' → '))
      return
    }
    state.set(path, 'open')
    for (const next of graph.get(path) ?? []) visit(next, [...way, path])
    state.set(path, 'done')
  }
  for (const path of graph.keys()) visit(path, [])
  expect(cycles).toEqual([])
})

const guide = readFileSync(join(root, 'docs/guides/architecture.md'), 'utf8')
const walks = guide.split(/^## /m).filter((section) => section.startsWith('The files of '))

test.each(walks.map((walk) => [walk.split('\n')[0]!, walk]))('%s: each is there, and named once', (_title, walk) => {
  const folder = walk.match(/`(packages\/[a-z]+\/src)`/)?.[1] ?? 'packages'
  const files = [...walk.matchAll(/`([a-z][\w./-]*\.ts)`/g)].map((match) => match[1]!)
  expect(files.filter((file, index) => files.indexOf(file) !== index)).toEqual([])
  // A second name next to one is in the same folder.
  const known = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  const isThere = (file: string) => known.some((path) => path === file || path.endsWith(`/${file}`))
  expect(files.filter((file) => !isThere(file))).toEqual([])
  expect(files.length).toBeGreaterThan(5)
})

/**
 * What a room that decides or waits may not call itself: it is handed a `Runtime`. A room stands here once all of it
 * keeps to that; the files named are its composition roots and what only touches real sockets, threads or disks.
 */
const onRuntime: Record<string, readonly string[]> = {
  proxy: ['run-core.ts', 'threads/worker-threads.ts', 'transport/raw-transport.ts'],
  shield: [],
  client: [],
  // The start time of the process, for its metrics; secrets, which must not be derived from a test's seed.
  hub: ['http/process-families.ts', 'access/secrets.ts'],
  sale: [],
  // It is the system's clock, read less often.
  limits: ['local/turn-clock.ts'],
  locks: [],
  ids: [],
  centre: [],
}

test.each(Object.keys(onRuntime))('%s takes time, timers, chance and names from its runtime', (room) => {
  const world =
    /\b(Date\.now|performance\.(now|timeOrigin)|Math\.random|randomUUID|AbortSignal\.timeout|process\.hrtime)\b|(?<![.\w#])(setTimeout|setInterval|setImmediate|randomBytes)\(|new Date\(\)/
  const wrong: string[] = []
  for (const { path } of sourcesOf(room)) {
    if (isTestFile(path)) continue
    if (onRuntime[room]!.includes(relative(join(root, 'packages', room, 'src'), path))) continue
    const lines = readFileSync(path, 'utf8').split('\n')
    lines.forEach((line, index) => {
      const code = line.replace(/^\s*(\/\/|\*|\/\*).*/, '').replace(/\s\/\/ .*/, '')
      if (world.test(code) && !/^\s*set(Timeout|Interval|Immediate)\(\w+: /.test(code))
        wrong.push(`${relative(root, path)}:${index + 1} ${line.trim()}`)
    })
  }
  expect(wrong).toEqual([])
})

test('what unit tests share registers nothing with the first file that loads it: a worker loads it once for all of them', () => {
  const wrong = rooms
    .flatMap((room) => sourcesOf(room))
    .filter(({ path }) => !/\.test\.tsx?$/.test(path))
    .filter(({ path }) => /^(before|after)(All|Each)\(/m.test(readFileSync(path, 'utf8')))
  expect(wrong.map(({ path }) => relative(root, path))).toEqual([])
})
