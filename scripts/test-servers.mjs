// `npm run test:servers -- FOLDER… [-- FILTER…]`: runs every test that starts a Redis, on each server found in the folders.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { root } from './setup.mjs'

const servers = ['redis-server', 'valkey-server']

/** The server programs in a folder, its `src` and `bin`, and the same places of its subfolders. */
export function findServers(folder) {
  const places = [folder, ...foldersIn(folder)]
  const found = places
    .flatMap((place) => [place, join(place, 'src'), join(place, 'bin')])
    .flatMap((place) => servers.map((name) => join(place, name)))
    .filter((file) => existsSync(file) && statSync(file).isFile())
  return [...new Set(found)]
}

function foldersIn(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .map(({ name }) => join(folder, name))
}

const startsServer = /\b(startRedis|startCluster(OfOne)?|startSentinel|redisProgram)\b/
const imported = /(?:from\s+|import\()'(\.[^']+)'/g

/** Whether a test file starts a Redis, itself or through a file that it imports. */
function touchesServer(file, seen = new Map()) {
  const known = seen.get(file)
  if (known !== undefined) return known
  seen.set(file, false)
  if (!existsSync(file)) return false
  const text = readFileSync(file, 'utf8')
  const touches =
    startsServer.test(text) ||
    [...text.matchAll(imported)].some(([, path]) => touchesServer(resolve(dirname(file), path), seen))
  seen.set(file, touches)
  return touches
}

/** The test files that start a server, relative to the repository's root. */
export function serverTests() {
  const seen = new Map()
  return ['packages', 'test']
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.test.ts') && !/(^|\/)(node_modules|dist)\//.test(file))
        .map((file) => join(root, folder, file)),
    )
    .filter((file) => touchesServer(file, seen))
    .map((file) => relative(root, file))
    .sort()
}

/** Runs the tests on each server in turn and returns the exit code. */
export async function testServers(node, words) {
  const split = words.indexOf('--')
  const folders = split < 0 ? words : words.slice(0, split)
  const filters = split < 0 ? [] : words.slice(split + 1)
  const base = process.env.INIT_CWD ?? process.cwd()
  const programs = folders.flatMap((folder) => findServers(resolve(base, folder)))
  if (programs.length === 0) {
    process.stderr.write('usage: npm run -s test:servers -- FOLDER… [-- FILTER…]; no server program was found there\n')
    return 2
  }
  const tests = serverTests().filter((file) => filters.length === 0 || filters.some((word) => file.startsWith(word)))
  const rows = []
  for (const program of programs) rows.push(await testOn(node, program, tests))
  process.stdout.write(`\n| server | files | passed | failed |\n|---|---|---|---|\n`)
  for (const { name, files, passed, failed } of rows) {
    process.stdout.write(`| ${name} | ${files} | ${passed} | ${failed.length} |\n`)
  }
  for (const { name, failed } of rows) for (const test of failed) process.stdout.write(`${name}: ${test}\n`)
  return rows.some(({ failed, passed }) => failed.length > 0 || passed === 0) ? 1 : 0
}

async function testOn(node, program, tests) {
  const version = spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout
  const name = version.replace(/^Server/, 'Valkey server').replace(/^(\w+) server v=(\S+).*$/s, '$1 $2')
  process.stdout.write(`${name}: ${tests.length} files\n`)
  const report = join(mkdtempSync(join(tmpdir(), 'firebreak-servers-')), 'report.json')
  const args = [join(root, 'node_modules/.bin/vitest'), 'run', ...tests]
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  const env = { ...process.env, FIREBREAK_REDIS_SERVER: program }
  await new Promise((ended) => {
    spawn(node, [...args, ...reporters], { stdio: 'inherit', cwd: root, env }).on('exit', ended)
  })
  const files = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')).testResults : []
  const all = files.flatMap((file) => {
    // A file that could not be loaded has no tests to count.
    if (file.assertionResults.length === 0 && file.status === 'failed')
      return [{ status: 'failed', fullName: file.name }]
    return file.assertionResults
  })
  return {
    name,
    files: files.length,
    passed: all.filter(({ status }) => status === 'passed').length,
    failed: all.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName),
  }
}
