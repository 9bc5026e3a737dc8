// `npm run release -- VERSION|patch|minor|major [--dry-run] [--out FOLDER] [--publish]`: one version for every package.
// Writes the version to every file that has it, turns the changelog's unreleased part into a section, packs, commits and
// tags. `--dry-run` prints all of that and changes nothing; only `--publish` uploads tarballs to the registry, with provenance.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packAll, publicPackages } from './pack.mjs'
import { root } from './setup.mjs'

const usage = 'usage: npm run release -- VERSION|patch|minor|major [--dry-run] [--out FOLDER] [--publish]\n'
const semver = /^(\d+)\.(\d+)\.(\d+)(-[0-9A-Za-z.-]+)?$/
const steps = ['major', 'minor', 'patch']

/** The next version: the current one raised by a step, or an explicit version, which must be newer. */
export function nextVersion(current, asked) {
  const [, ...parts] = semver.exec(current)
  const numbers = parts.slice(0, 3).map(Number)
  const step = steps.indexOf(asked)
  if (step >= 0) {
    // From a pre-release, a step leads to the version that it prepares: 1.1.0-beta.1 by minor or patch is 1.1.0.
    const isOnItsWay = parts[3] !== undefined && numbers.slice(step + 1).every((number) => number === 0)
    if (isOnItsWay) return numbers.join('.')
    return numbers.map((number, place) => (place < step ? number : place === step ? number + 1 : 0)).join('.')
  }
  if (!semver.test(asked ?? '')) {
    throw new Error(`"${asked}" is not a version such as 1.2.3, nor one of ${steps.join(', ')}`)
  }
  if (compareVersions(asked, current) <= 0) throw new Error(`${asked} is not newer than ${current}`)
  return asked
}

/** Compares by semver: a pre-release comes before its version, and beta.9 before beta.10. */
function compareVersions(one, other) {
  const [left, right] = [one, other].map((version) => semver.exec(version))
  for (const place of [1, 2, 3]) if (left[place] !== right[place]) return Number(left[place]) - Number(right[place])
  const [before, after] = [left, right].map((match) => match[4]?.slice(1).split('.'))
  if (before === undefined || after === undefined) return Number(before === undefined) - Number(after === undefined)
  for (const [place, word] of before.entries()) {
    const against = after[place]
    if (against === undefined) return 1
    if (word === against) continue
    const areNumbers = [word, against].map((text) => /^\d+$/.test(text))
    if (areNumbers[0] && areNumbers[1]) return Number(word) - Number(against)
    if (areNumbers[0] !== areNumbers[1]) return areNumbers[0] ? -1 : 1
    return word < against ? -1 : 1
  }
  return before.length - after.length
}

/** The changelog's unreleased part, which becomes the release notes. */
export function releaseNotes(changelog) {
  const notes = /^## Unreleased\n([\s\S]*?)(?=^## |(?![\s\S]))/m.exec(changelog)?.[1]?.trim()
  if (!notes) throw new Error('CHANGELOG.md has nothing under "## Unreleased": say what is new there first')
  return notes
}

/** Every file that holds the version, with its new text. */
export function releaseFiles(version, date) {
  const current = JSON.parse(read('package.json')).version
  const folders = ['packages', 'examples'].flatMap((place) =>
    readdirSync(join(root, place)).map((name) => join(place, name)),
  )
  const manifests = ['.', ...folders]
    .map((folder) => join(folder, 'package.json'))
    .filter((file) => existsSync(join(root, file)))
  const own = new Set(manifests.map((file) => JSON.parse(read(file)).name))
  const files = manifests.map((file) => [
    file,
    `${JSON.stringify(bumped(JSON.parse(read(file)), own, version), undefined, 2)}\n`,
  ])
  const lock = JSON.parse(read('package-lock.json'))
  lock.version = version
  for (const folder of ['', ...folders]) {
    if (lock.packages[folder] !== undefined) lock.packages[folder] = bumped(lock.packages[folder], own, version)
  }
  const replaced = (file, from, to) => [file, read(file).replaceAll(from, to)]
  return [
    ...files,
    ['package-lock.json', `${JSON.stringify(lock, undefined, 2)}\n`],
    replaced('packages/core/src/version.ts', `'${current}'`, `'${version}'`),
    replaced('deploy/helm/firebreak/Chart.yaml', /^(version|appVersion): .*$/gm, `$1: ${version}`),
    replaced('CHANGELOG.md', /^## Unreleased$/gm, `## Unreleased\n\n## ${version} (${date})`),
  ]
}

function bumped(manifest, own, version) {
  const copy = manifest.version === undefined ? { ...manifest } : { ...manifest, version }
  for (const field of ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies']) {
    if (copy[field] === undefined) continue
    copy[field] = Object.fromEntries(
      Object.entries(copy[field]).map(([name, range]) => [name, own.has(name) ? version : range]),
    )
  }
  return copy
}

/** The public packages, each after its dependencies, so that nobody installs one whose dependency is not published yet. */
export function publishOrder() {
  const manifests = new Map(publicPackages().map(({ manifest }) => [manifest.name, manifest]))
  const ordered = []
  const add = (name) => {
    if (!manifests.has(name) || ordered.includes(name)) return
    for (const dependency of Object.keys(manifests.get(name).dependencies ?? {})) add(dependency)
    ordered.push(name)
  }
  for (const name of manifests.keys()) add(name)
  return ordered
}

/** The npm arguments that publish one tarball; a pre-release never becomes `latest`. */
export function publishArguments(tarball, version) {
  const tag = version.includes('-') ? 'next' : 'latest'
  return ['publish', tarball, '--provenance', '--access', 'public', '--tag', tag]
}

function read(file) {
  return readFileSync(join(root, file), 'utf8')
}

function changedLines(file, text) {
  const before = new Set(read(file).split('\n'))
  return text.split('\n').filter((line) => !before.has(line) && line !== '')
}

function main(words) {
  const isDry = words.includes('--dry-run')
  const at = words.indexOf('--out')
  const out = resolve(process.env.INIT_CWD ?? root, at < 0 ? 'release' : (words[at + 1] ?? ''))
  const asked = words.find((word, index) => !word.startsWith('--') && (at < 0 || index !== at + 1))
  const version = nextVersion(JSON.parse(read('package.json')).version, asked ?? (isDry ? 'patch' : undefined))
  const notes = releaseNotes(read('CHANGELOG.md'))
  const files = releaseFiles(version, new Date().toISOString().slice(0, 10))
  const tarballOf = (name) => join(out, `${name.replace('@', '').replace('/', '-')}-${version}.tgz`)
  const publish = publishOrder().map((name) => publishArguments(tarballOf(name), version))
  const git = (...args) =>
    execFileSync('git', args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8' })
  if (isDry) {
    process.stdout.write(`Version ${version}\n\nFiles:\n`)
    for (const [file, text] of files)
      process.stdout.write(
        `  ${file}\n${changedLines(file, text)
          .map((line) => `    + ${line.trim()}\n`)
          .join('')}`,
      )
    process.stdout.write(`\nThen:\n  git commit, git tag v${version}\n`)
    for (const args of publish) process.stdout.write(`  npm ${args.join(' ')}\n`)
    process.stdout.write(`\nRelease notes:\n\n${notes}\n\nNothing was changed (--dry-run).\n`)
    return
  }
  if (git('status', '--porcelain').trim() !== '') throw new Error('the work tree has changes that are not committed')
  for (const [file, text] of files) writeFileSync(join(root, file), text)
  execFileSync(process.execPath, [join(root, 'scripts/run.mjs'), 'build'], { cwd: root, stdio: 'inherit' })
  packAll(out)
  writeFileSync(join(out, 'NOTES.md'), `${notes}\n`)
  git('commit', '--all', '--quiet', '--message', `root: release ${version}`)
  git('tag', '--annotate', `v${version}`, '--message', `Firebreak ${version}\n\n${notes}`)
  process.stdout.write(`Version ${version} is committed and tagged; tarballs and NOTES.md are in ${out}.\n`)
  if (!words.includes('--publish')) return
  for (const args of publish) execFileSync('npm', args, { cwd: root, stdio: 'inherit' })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    main(process.argv.slice(2))
  } catch (error) {
    process.stderr.write(`release: ${error.message}\n${usage}`)
    process.exit(2)
  }
}
