// `npm run pack -- --out FOLDER [--only NAME]`: packs every public package as it will be published, one tarball each.
// Stages what a user needs (built modules, types, Lua and SQL, README, LICENSE). Leaves out tests, source maps, build
// information, and the source condition that only this checkout uses.
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from './setup.mjs'

const isLeftOut = (path) =>
  /(\.test(-[a-z]+)?\.(js|d\.ts)|\.map|\.tsbuildinfo)$/.test(path) ||
  // Modules that only tests use, and the modules of the console, which are already in its built page.
  /(^|[\\/])testing[\\/]|^page[\\/]/.test(path)

/** Whether a built module has no source any more: an incremental build does not delete it. */
function isOrphan(folder, path) {
  const module = /^(?!site\/)(.*)\.(js|d\.ts)$/.exec(path)
  return module !== null && !['ts', 'tsx'].some((ending) => existsSync(join(folder, 'src', `${module[1]}.${ending}`)))
}

/** The public packages, each with its folder and manifest. */
export function publicPackages() {
  return readdirSync(join(root, 'packages'))
    .map((room) => {
      const folder = join(root, 'packages', room)
      return { folder, manifest: JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) }
    })
    .filter(({ manifest }) => manifest.private !== true)
}

/** The manifest as published, without the parts that only this checkout uses. */
export function publishedManifest(manifest) {
  const { devDependencies: _, scripts: __, ...rest } = manifest
  const withoutSource = (value) =>
    typeof value !== 'object' || value === null
      ? value
      : Object.fromEntries(
          Object.entries(value)
            .filter(([condition]) => condition !== 'firebreak-source')
            .map(([name, inner]) => [name, withoutSource(inner)]),
        )
  return { ...rest, exports: withoutSource(rest.exports) }
}

function stage({ folder, manifest }, into) {
  const dist = join(folder, 'dist')
  if (!existsSync(dist)) throw new Error(`${manifest.name} is not built. Run "npm run build" first.`)
  mkdirSync(into, { recursive: true })
  for (const file of readdirSync(dist, { recursive: true, withFileTypes: true })) {
    const from = join(file.parentPath, file.name)
    const path = from.slice(dist.length + 1)
    if (!file.isFile() || isLeftOut(path) || isOrphan(folder, path)) continue
    const to = join(into, 'dist', path)
    mkdirSync(join(to, '..'), { recursive: true })
    if (!/\.(js|d\.ts)$/.test(path)) cpSync(from, to)
    else writeFileSync(to, readFileSync(from, 'utf8').replace(/\n?\/\/# sourceMappingURL=\S+\s*$/, '\n'))
  }
  const readme = join(folder, 'README.md')
  if (!existsSync(readme)) throw new Error(`${manifest.name} has no README.md`)
  cpSync(readme, join(into, 'README.md'))
  cpSync(join(root, 'LICENSE'), join(into, 'LICENSE'))
  writeFileSync(join(into, 'package.json'), `${JSON.stringify(publishedManifest(manifest), undefined, 2)}\n`)
}

/** Packs every public package into `out` and returns the paths of the tarballs. */
export function packAll(out) {
  mkdirSync(out, { recursive: true })
  const staging = mkdtempSync(join(tmpdir(), 'firebreak-pack-'))
  try {
    const folders = publicPackages().map((entry, index) => {
      const into = join(staging, String(index))
      stage(entry, into)
      return into
    })
    // One npm process for all, because npm takes longer to start than to pack. It prints the names of the tarballs in order.
    const args = ['pack', ...folders, '--pack-destination', out, '--loglevel=error', '--ignore-scripts']
    const printed = execFileSync('npm', args, { cwd: staging, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
    return printed
      .trim()
      .split('\n')
      .slice(-folders.length)
      .map((name) => join(out, name))
  } finally {
    rmSync(staging, { recursive: true, force: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const at = process.argv.indexOf('--out')
  const out = at < 0 ? undefined : process.argv[at + 1]
  if (out === undefined) {
    process.stderr.write('usage: npm run pack -- --out FOLDER\n')
    process.exit(2)
  }
  const packed = packAll(resolve(process.env.INIT_CWD ?? root, out))
  for (const file of packed) process.stdout.write(`${file}\n`)
}
