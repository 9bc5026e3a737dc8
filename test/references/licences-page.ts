// @ts-expect-error A script without types, which must run without a build.
import { licenceTable, lockedPackages } from '../../scripts/sbom.mjs'

/** The licences of what is shipped. */
export const licencesPage = new URL('../../docs/reference/licences.md', import.meta.url)

/** The page as it should be. */
export function writtenLicencesPage(): string {
  const intro = 'What is shipped with Firebreak, by licence, out of the lock file (`npm run sbom` has the hashes too).'
  return `# Licences\n\n${intro}\n\n${(licenceTable as (packages: object) => string)((lockedPackages as () => object)())}\n`
}
