import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type PackageRegistry, startChild, startPackageRegistry } from '@firebreak/testkit'

export const root = fileURLToPath(new URL('../..', import.meta.url))
export const tsc = join(root, 'node_modules/typescript/bin/tsc')

const packaged = `node-${process.platform}-${process.arch}/bin/node`

/** The oldest and newest Node that the library promises to run on, and the one in between; `npm test` fetches them. */
export const nodes: readonly { readonly major: number; readonly program: string }[] = [
  { major: 20, program: join(root, 'node_modules/.cache/node-20/node_modules', packaged) },
  { major: 22, program: join(root, 'node_modules/.cache/node-22/node_modules', packaged) },
  { major: 24, program: process.execPath },
]

export interface Release {
  /** The folder of our tarballs. */
  readonly tarballs: string
  readonly registry: PackageRegistry
}

/** Packs every public package and serves the tarballs, with everything that they depend on, on loopback. */
export async function packAndServe(folder: string): Promise<Release> {
  const tarballs = join(folder, 'tarballs')
  execFileSync(process.execPath, [join(root, 'scripts/pack.mjs'), '--out', tarballs], { encoding: 'utf8' })
  const packed = readdirSync(tarballs).map((file) => join(tarballs, file))
  return {
    tarballs,
    registry: await startPackageRegistry(packed, join(root, 'node_modules'), join(folder, 'outside')),
  }
}

/** An environment in which `node`, `npm` and `npx` are those of one Node, and the registry is ours. */
export function environmentOf(node: string, registry: PackageRegistry, cache: string): NodeJS.ProcessEnv {
  const { REDIS_URL: _, FIREBREAK_HUB: __, ...env } = process.env
  return {
    ...env,
    NODE_OPTIONS: '',
    PATH: `${dirname(node)}${delimiter}${process.env['PATH']}`,
    npm_config_registry: registry.url,
    npm_config_cache: cache,
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_update_notifier: 'false',
    npm_config_loglevel: 'warn',
  }
}

/** The output of a Node's `npm install` in an empty folder; it fails if a package refuses this Node. */
export async function installWith(
  node: string,
  folder: string,
  names: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<string> {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"private":true}')
  const child = startChild('npm', ['install', '--engine-strict', ...names], { cwd: folder, env })
  if ((await child.exited) !== 0) throw new Error(`npm install with ${node} failed:\n${child.output()}`)
  return child.output()
}
