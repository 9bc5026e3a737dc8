import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename, join } from 'node:path'

interface Version {
  readonly manifest: Record<string, unknown>
  /** Makes the tarball; only called when it is installed. */
  readonly tarball: () => Buffer
}

/** A registry on loopback, for tests that install packages as a user would. */
export interface PackageRegistry {
  readonly url: string
  stop(): Promise<void>
}

/**
 * Serves tarballs of our own and, for everything they depend on, the packages that this checkout has installed: what a
 * test installs is then what the lock file says, without any network.
 *
 * @param tarballs our packages, as `npm pack` makes them
 * @param nodeModules the `node_modules` whose packages stand for the outside
 * @param cacheFolder where tarballs of those are kept while the test runs
 */
export async function startPackageRegistry(
  tarballs: readonly string[],
  nodeModules: string,
  cacheFolder: string,
): Promise<PackageRegistry> {
  const packages = new Map<string, Map<string, Version>>()
  const add = (manifest: Record<string, unknown>, tarball: () => Buffer): void => {
    const name = manifest['name'] as string
    const versions = packages.get(name) ?? new Map<string, Version>()
    packages.set(name, versions)
    if (!versions.has(manifest['version'] as string)) versions.set(manifest['version'] as string, { manifest, tarball })
  }
  for (const path of tarballs) add(manifestIn(path), () => readFileSync(path))
  mkdirSync(cacheFolder, { recursive: true })
  for (const folder of installedPackages(nodeModules)) {
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<string, unknown>
    if (typeof manifest['name'] !== 'string' || typeof manifest['version'] !== 'string') continue
    // A test must not run other packages' install scripts.
    add({ ...manifest, scripts: {} }, () => packFolder(folder, cacheFolder))
  }
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url!.slice(1).split('?')[0]!)
    const [name, file] = path.split('/-/') as [string, string | undefined]
    const versions = packages.get(name)
    if (versions === undefined) {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"not found"}')
      return
    }
    if (file !== undefined) {
      response.end(versions.get(file.replace(/\.tgz$/, ''))!.tarball())
      return
    }
    const host = `http://${request.headers.host}`
    const all = [...versions].map(([version, { manifest, tarball }]) => {
      const integrity = `sha512-${createHash('sha512').update(tarball()).digest('base64')}`
      return [version, { ...manifest, dist: { tarball: `${host}/${name}/-/${version}.tgz`, integrity } }] as const
    })
    const latest = all.map(([version]) => version).sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
    const document = { name, 'dist-tags': { latest: latest.at(-1) }, versions: Object.fromEntries(all) }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function manifestIn(tarball: string): Record<string, unknown> {
  const { stdout } = spawnSync('tar', ['-xzOf', tarball, 'package/package.json'], { encoding: 'utf8' })
  return JSON.parse(stdout) as Record<string, unknown>
}

/** Every installed package, nested ones too; links to workspaces are passed over. */
function installedPackages(nodeModules: string): string[] {
  const found: string[] = []
  for (const entry of readdirSync(nodeModules, { withFileTypes: true })) {
    if (!entry.isDirectory() || entry.name.startsWith('.')) continue
    const folder = join(nodeModules, entry.name)
    if (entry.name.startsWith('@')) {
      found.push(...installedPackages(folder))
      continue
    }
    if (existsSync(join(folder, 'package.json'))) found.push(folder)
    if (existsSync(join(folder, 'node_modules'))) found.push(...installedPackages(join(folder, 'node_modules')))
  }
  return found
}

function packFolder(folder: string, cacheFolder: string): Buffer {
  const digest = createHash('sha256').update(folder).digest('hex').slice(0, 16)
  const file = join(cacheFolder, `${basename(folder)}-${digest}.tgz`)
  if (!existsSync(file)) {
    // npm strips the first folder of a tarball, whatever its name.
    const args = ['-czf', file, '--exclude=./node_modules', '--transform=s,^\\.,package,', '-C', folder, '.']
    const { status, stderr } = spawnSync('tar', args, { encoding: 'utf8' })
    if (status !== 0) throw new Error(`tar of ${folder}: ${stderr}`)
  }
  return readFileSync(file)
}
