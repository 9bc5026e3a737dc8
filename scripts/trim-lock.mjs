// Removes references from package-lock.json to packages for other platforms that the lock file has no entry for. npm only
// writes entries for the platform where it ran, and then `npm ci` refuses its own file: "Missing: … from lock file". For
// builds on one platform, such as the image; versions and hashes of what is installed there still come from the file.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The lock file without the optional dependencies that it has no entry for, and their names. */
export function trimLock(lock) {
  const trimmed = []
  const packages = Object.fromEntries(
    Object.entries(lock.packages).map(([path, entry]) => {
      if (entry.optionalDependencies === undefined) return [path, entry]
      const kept = Object.entries(entry.optionalDependencies).filter(([name]) => {
        const isThere = isLocked(lock.packages, path, name)
        if (!isThere) trimmed.push(name)
        return isThere
      })
      return [path, { ...entry, optionalDependencies: Object.fromEntries(kept) }]
    }),
  )
  return { lock: { ...lock, packages }, trimmed }
}

/** Searches as Node does: in the package's own node_modules, then in those of the folders above. */
function isLocked(packages, path, name) {
  for (let place = path; ; place = place.slice(0, Math.max(0, place.lastIndexOf('/')))) {
    if (packages[`${place === '' ? '' : `${place}/`}node_modules/${name}`] !== undefined) return true
    if (place === '') return false
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const file = new URL('../package-lock.json', import.meta.url)
  const { lock, trimmed } = trimLock(JSON.parse(readFileSync(file, 'utf8')))
  writeFileSync(file, `${JSON.stringify(lock, undefined, 2)}\n`)
  process.stderr.write(`not for this platform, and not in the lock file: ${trimmed.join(', ') || 'nothing'}\n`)
}
