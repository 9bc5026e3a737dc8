// Prepares a fresh clone: npm packages, a Node that is new enough, and (for tests) real servers.
// Plain JavaScript without dependencies on purpose: it runs on the machine's own Node before anything is installed.
// Progress goes to stderr, so that commands that run after it have stdout for their data.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const stamp = join(root, 'node_modules', '.firebreak-setup')
const requiredNodeMajor = 24

/** Debian package → the program whose presence shows that it is installed. */
const servers = {
  'redis-server': 'redis-server',
  'redis-tools': 'redis-cli',
  'mariadb-server': 'mariadbd',
  postgresql: '/usr/lib/postgresql/15/bin/postgres',
  zookeeper: '/usr/share/zookeeper/bin/zkServer.sh',
  'etcd-server': 'etcd',
  'nats-server': 'nats-server',
  kcat: 'kcat',
  nutcracker: 'nutcracker',
  tcpdump: 'tcpdump',
  faketime: 'faketime',
  prometheus: 'promtool',
  systemd: 'systemd-analyze',
  'python3-redis': '/usr/lib/python3/dist-packages/redis/__init__.py',
  'libhiredis-dev': '/usr/include/hiredis/hiredis.h',
  'php-redis': '/usr/share/doc/php-redis',
  'php-cli': 'php',
  gcc: 'cc',
}

const say = (text) => process.stderr.write(`firebreak setup: ${text}\n`)

function fail(text) {
  say(text)
  process.exit(1)
}

function run(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2], ...options })
  if (result.error) return { ok: false, why: result.error.message }
  return { ok: result.status === 0, why: `exit code ${result.status}` }
}

function lockDigest() {
  const hash = createHash('sha256')
  for (const file of ['package.json', 'package-lock.json']) {
    const path = join(root, file)
    if (existsSync(path)) hash.update(readFileSync(path))
  }
  return hash.digest('hex')
}

function isOnPath(program) {
  if (program.startsWith('/')) return existsSync(program)
  const folders = (process.env.PATH ?? '').split(':').concat('/usr/sbin', '/sbin')
  return folders.some((folder) => folder !== '' && existsSync(join(folder, program)))
}

/** Installs the npm packages, unless they were installed from this very lock file. */
export function ensurePackages() {
  // The image's build has installed from the lock file, without install scripts; another install would run them.
  if (process.env.FIREBREAK_PACKAGES === 'installed') return
  const digest = lockDigest()
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) return
  say('installing npm packages (once; about a minute) …')
  const npm = run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error'])
  if (!npm.ok) fail(`npm install failed (${npm.why}). Mend what it says above, then run the command again.`)
  mkdirSync(dirname(stamp), { recursive: true })
  writeFileSync(stamp, lockDigest())
}

function nodeMajor(program) {
  const result = spawnSync(program, ['-p', 'process.versions.node'], { encoding: 'utf8' })
  return result.status === 0 ? Number.parseInt(result.stdout, 10) : 0
}

/**
 * The path of a Node that runs our sources. The npm package `node` downloads it in an install script. If install scripts
 * are disabled, this runs that script.
 */
export function ensureNode() {
  if (Number.parseInt(process.versions.node, 10) >= requiredNodeMajor) return process.execPath
  const packaged = join(root, 'node_modules', 'node', 'bin', 'node')
  if (existsSync(packaged) && nodeMajor(packaged) >= requiredNodeMajor) return packaged
  say('the npm package "node" is without its program (install scripts are off): fetching it …')
  run(process.execPath, ['installArchSpecificPackage.js'], { cwd: join(root, 'node_modules', 'node') })
  if (existsSync(packaged) && nodeMajor(packaged) >= requiredNodeMajor) return packaged
  return fail(
    `Node ${requiredNodeMajor} or newer is needed and the npm package "node" could not provide it. ` +
      `Install Node ${requiredNodeMajor} by hand and run the command again.`,
  )
}

/** Older Nodes that the libraries promise to run on, for the tests of the packages. */
const olderNodes = { 20: '20.20.2', 22: '22.23.3' }

/**
 * Installs the older Nodes in `node_modules/.cache/node-VERSION`. They are not dependencies of the workspace, because three
 * packages with a program called `node` would compete to be the one that npm scripts run on.
 */
export function ensureOlderNodes() {
  for (const [major, version] of Object.entries(olderNodes)) {
    const folder = join(root, 'node_modules', '.cache', `node-${major}`)
    const name = `node-${process.platform}-${process.arch}`
    const program = join(folder, 'node_modules', name, 'bin', 'node')
    if (existsSync(program)) continue
    say(`fetching Node ${version} for the tests of the packages …`)
    mkdirSync(folder, { recursive: true })
    const npm = run('npm', [
      'install',
      '--prefix',
      folder,
      '--no-audit',
      '--no-fund',
      '--loglevel=error',
      `${name}@${version}`,
    ])
    if (!npm.ok) fail(`npm could not fetch ${name}@${version} (${npm.why}); the tests of the packages need it.`)
  }
}

/** Installs the real servers that the tests run against (Debian or Ubuntu, as root). */
export function ensureServers() {
  const missing = Object.keys(servers).filter((name) => !isOnPath(servers[name]))
  if (missing.length === 0) return
  const byHand = `apt-get install --no-install-recommends ${missing.join(' ')}`
  if (!isOnPath('apt-get'))
    fail(`the tests need ${missing.join(', ')}; there is no apt-get here: install them by hand.`)
  if (process.getuid?.() !== 0) fail(`the tests need ${missing.join(', ')}. Run as root: ${byHand}`)
  say(`installing ${missing.join(', ')} …`)
  // A policy script that exits with 101 keeps apt from starting the servers: the tests start their own.
  const policy = '/usr/sbin/policy-rc.d'
  const ownPolicy = !existsSync(policy)
  if (ownPolicy) writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const quiet = { stdio: ['ignore', 'ignore', 2], env }
  run('apt-get', ['update', '-qq'], quiet)
  const apt = run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...missing], quiet)
  if (ownPolicy) run('rm', ['-f', policy])
  if (!apt.ok) fail(`apt-get failed (${apt.why}). By hand: ${byHand}`)
  const still = missing.filter((name) => !isOnPath(servers[name]))
  if (still.length > 0) fail(`apt-get ended well but these are still not found: ${still.join(', ')}`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  ensurePackages()
  ensureNode()
  if (process.argv.includes('--servers')) ensureServers()
  say('ready')
}
