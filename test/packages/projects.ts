import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** An application of a user: its files, and how it is run. */
export interface Project {
  readonly name: string
  readonly files: Readonly<Record<string, string>>
  /** The compiler's options; undefined for plain JavaScript. */
  readonly compilerOptions?: Readonly<Record<string, unknown>>
  /** The file that Node runs in the end. */
  readonly main: string
}

/** Calls GET until the key is answered from memory, then says so. The first five lines differ from project to project. */
const body = (types: { settings: string; done: string }) => `
async function main()${types.settings} {
  const redis = protect(new Redis(process.env.REDIS_URL${types.done}), {
    hubs: [process.env.HUB_URL${types.done}],
    serviceId: 'shop',
    tableFile: false,
  })
  await redis.set('product_100', 'a kettle')
  const endAt = Date.now() + 60000
  while (peek(redis, 'product_100') === undefined) {
    if (Date.now() > endAt) throw new Error('never answered from memory')
    await Promise.all(Array.from({ length: 20 }, () => redis.get('product_100')))
  }
  console.log('from memory:', await redis.get('product_100'), 'on Node', process.versions.node)
  unprotect(redis)
  redis.disconnect()
}
void main()
`
const plain = body({ settings: '', done: '' })
const typed = body({ settings: ': Promise<void>', done: '!' })
const esm = `import { peek, protect, unprotect } from 'firebreak'\nimport { Redis } from 'ioredis'\n`
const cjs = `const { peek, protect, unprotect } = require('firebreak')\nconst { Redis } = require('ioredis')\n`
const strict = { strict: true, skipLibCheck: false, target: 'es2022', outDir: 'out', types: ['node'] }

export const projects: readonly Project[] = [
  { name: 'esm', files: { 'package.json': '{"type":"module"}', 'app.js': esm + plain }, main: 'app.js' },
  { name: 'cjs', files: { 'package.json': '{}', 'app.js': cjs + plain }, main: 'app.js' },
  ...(['node16', 'nodenext'] as const).map((module) => ({
    name: `typescript-esm-${module}`,
    files: { 'package.json': '{"type":"module"}', 'app.ts': esm + typed },
    compilerOptions: { ...strict, module, moduleResolution: module },
    main: 'out/app.js',
  })),
  {
    name: 'typescript-esm-bundler',
    files: { 'package.json': '{"type":"module"}', 'app.ts': esm + typed },
    compilerOptions: { ...strict, module: 'esnext', moduleResolution: 'bundler' },
    main: 'out/app.js',
  },
  {
    name: 'typescript-cjs-nodenext',
    files: { 'package.json': '{}', 'app.ts': esm + typed },
    compilerOptions: { ...strict, module: 'nodenext', moduleResolution: 'nodenext' },
    main: 'out/app.js',
  },
]

/** An application of which one part requires the package and another imports it; no server is needed to tell. */
export const mixedProject: Project = {
  name: 'mixed',
  files: {
    'package.json': '{}',
    'app.js': `
const { peek, protect, shieldOf, unprotect } = require('firebreak')
const { Redis } = require('ioredis')
async function main() {
  const imported = await import('firebreak')
  const own = await import('@firebreak/client')
  if (imported.protect !== protect || own.protect !== protect) throw new Error('two modules')
  const redis = protect(new Redis({ lazyConnect: true }), { serviceId: 'shop', tableFile: false })
  if (imported.shieldOf(redis) === undefined || own.shieldOf(redis) !== shieldOf(redis)) throw new Error('two shields')
  unprotect(redis)
  redis.disconnect()
  console.log('one module, one shield')
}
main()
`,
  },
  main: 'app.js',
}

const publicPackages = 'centre client core find hub ids limits locks proxy redis sale shield watch console'
  .split(' ')
  .map((name) => `@firebreak/${name}`)

/** Only compiled: every package at once, with its declarations checked too. */
export const everyType: Project = {
  name: 'every-type',
  files: {
    'package.json': '{"type":"module"}',
    'app.ts': ['firebreak', 'firebreak/cli', ...publicPackages, '@firebreak/limits/policy', '@firebreak/core/node']
      .map((name, index) => `export * as p${index} from '${name}'`)
      .join('\n'),
  },
  compilerOptions: { ...strict, module: 'nodenext', moduleResolution: 'nodenext', noEmit: true },
  main: 'app.ts',
}

/** Writes a project next to a copy of the installed packages, compiles it if it is TypeScript, and returns its folder. */
export function makeProject(project: Project, folder: string, installed: string, tsc: string): string {
  mkdirSync(folder, { recursive: true })
  execFileSync('cp', ['-al', join(installed, 'node_modules'), join(folder, 'node_modules')])
  for (const [file, text] of Object.entries(project.files)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), text)
  }
  if (project.compilerOptions !== undefined) {
    const config = { compilerOptions: project.compilerOptions, files: ['app.ts'] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
    try {
      execFileSync(process.execPath, [tsc, '--project', '.'], { cwd: folder, encoding: 'utf8' })
    } catch (error) {
      throw new Error(`tsc refuses ${project.name}:\n${(error as { stdout: string }).stdout}`)
    }
  }
  return folder
}
