// `npm run sbom [-- --all | --licences]`: lists what is shipped, from the lock file alone: a CycloneDX document on
// stdout, or the licences as a table. With --all, also what builds and tests it.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = new URL('../', import.meta.url)

/** The third-party packages of the lock file, sorted; development dependencies only if asked for. */
export function lockedPackages({ withDevelopment = false } = {}) {
  const { packages } = JSON.parse(readFileSync(new URL('package-lock.json', root), 'utf8'))
  const found = new Map()
  for (const [path, entry] of Object.entries(packages)) {
    const place = path.lastIndexOf('node_modules/')
    if (place === -1 || entry.link) continue
    if (!withDevelopment && (entry.dev || entry.devOptional)) continue
    const name = entry.name ?? path.slice(place + 'node_modules/'.length)
    const { version, license = 'unknown', integrity, optional = false, os, cpu } = entry
    found.set(`${name}@${version}`, {
      name,
      version,
      license,
      integrity,
      optional,
      hasScript: !!entry.hasInstallScript,
      isForOnePlatform: os !== undefined || cpu !== undefined,
    })
  }
  return [...found.values()].sort((a, b) => (`${a.name}@${a.version}` < `${b.name}@${b.version}` ? -1 : 1))
}

/** A CycloneDX 1.6 document of these packages. */
export function sbomOf(packages) {
  const { version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'))
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type: 'application', name: 'firebreak', version, 'bom-ref': 'firebreak' } },
    components: packages.map(({ name, version, license, integrity, optional }) => ({
      type: 'library',
      name,
      version,
      'bom-ref': purlOf(name, version),
      purl: purlOf(name, version),
      scope: optional ? 'optional' : 'required',
      licenses: / (AND|OR|WITH) |^\(/.test(license) ? [{ expression: license }] : [{ license: { id: license } }],
      hashes: hashesOf(integrity),
    })),
  }
}

/**
 * The licences as a Markdown table. Packages that exist once per platform share one row, because the version of npm decides
 * which of them are in the lock file.
 */
export function licenceTable(packages) {
  const byLicence = Map.groupBy(packages, ({ license }) => license)
  const rows = [...byLicence.keys()].sort().map((license) => {
    const names = byLicence.get(license).map(({ name, version, isForOnePlatform }) => {
      const family = isForOnePlatform
        ? name.replace(/-(aix|android|darwin|freebsd|linux|openbsd|win32)-.*$/, '-*')
        : name
      return `${family} ${version}`
    })
    return `| ${license} | ${[...new Set(names)].join(', ')} |`
  })
  return ['| licence | packages |', '|---|---|', ...rows].join('\n')
}

function purlOf(name, version) {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`
}

/** `sha512-BASE64` in the form that CycloneDX uses. */
function hashesOf(integrity = '') {
  return [...integrity.matchAll(/sha(\d+)-(\S+)/g)].map(([, bits, text]) => ({
    alg: `SHA-${bits}`,
    content: Buffer.from(text, 'base64').toString('hex'),
  }))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const packages = lockedPackages({ withDevelopment: process.argv.includes('--all') })
  const text = process.argv.includes('--licences') ? licenceTable(packages) : JSON.stringify(sbomOf(packages), null, 2)
  process.stdout.write(`${text}\n`)
}
