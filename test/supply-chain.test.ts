import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { licencesPage, writtenLicencesPage } from './references/licences-page.ts'

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')

interface LockEntry {
  readonly resolved?: string
  readonly integrity?: string
  readonly link?: boolean
  readonly dev?: boolean
  readonly devOptional?: boolean
}

test('images are pinned by digest, and packages by the lock file, without install scripts', () => {
  const dockerfile = read('deploy/docker/Dockerfile')
  // No default: there is no digest unless somebody passes one.
  expect(dockerfile).toMatch(/^ARG NODE_IMAGE$/m)
  const bases = dockerfile.match(/^FROM .*/gm)!
  expect(bases).toHaveLength(2)
  for (const base of bases) expect(base).toMatch(/^FROM \$\{NODE_IMAGE\}( AS build)?$/)
  expect(dockerfile).toContain('*@sha256:*')
  expect(dockerfile).toMatch(/npm ci --ignore-scripts/)
  expect(dockerfile).not.toMatch(/npm (install|i) /)
  // Or the build's own set-up would install once more, with scripts.
  expect(dockerfile).toContain('FIREBREAK_PACKAGES=installed npm run build')
  const { services } = parse(read('deploy/compose/compose.yaml')) as {
    services: Record<string, { image?: string; build?: { args: Record<string, string> } }>
  }
  for (const [name, { image, build }] of Object.entries(services)) {
    expect(image ?? build!.args['NODE_IMAGE'], name).toMatch(/^\$\{[A-Z]+_IMAGE:\?/)
  }
})

test('every package of the lock file has its hash', () => {
  const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, LockEntry> }
  const others = Object.entries(packages).filter(([path, { link }]) => path.includes('node_modules/') && !link)
  expect(others.length).toBeGreaterThan(50)
  expect(others.filter(([, { integrity }]) => !/^sha512-/.test(integrity ?? '')).map(([path]) => path)).toEqual([])
})

test('the bill of materials has every package that is shipped, with version, hash and licence', async () => {
  const { lockedPackages, sbomOf } = (await import(new URL('../scripts/sbom.mjs', import.meta.url).href)) as {
    lockedPackages: (options?: object) => { name: string; license: string; version: string }[]
    sbomOf: (packages: object[]) => {
      specVersion: string
      components: { purl: string; hashes: { content: string }[] }[]
    }
  }
  const shipped = lockedPackages()
  const sbom = sbomOf(shipped)
  expect(sbom).toMatchObject({ bomFormat: 'CycloneDX', specVersion: '1.6' })
  const names = shipped.map(({ name }) => name)
  for (const name of ['fastify', 'ws', 'zod', 'pino', 'yaml']) expect(names).toContain(name)
  expect(names).not.toContain('vitest')
  expect(lockedPackages({ withDevelopment: true }).map(({ name }) => name)).toContain('vitest')
  for (const { purl, hashes } of sbom.components) {
    expect(purl).toMatch(/^pkg:npm\/(%40[\w.-]+\/)?[\w.-]+@\d/)
    expect(hashes[0]?.content, purl).toMatch(/^[0-9a-f]{128}$/)
  }
  const free =
    /^(\(?(MIT|ISC|Apache-2\.0|BSD-[23]-Clause|0BSD|BlueOak-1\.0\.0|CC0-1\.0|Unlicense|Python-2\.0|WTFPL)( (OR|AND) )?\)?)+$/
  expect(
    shipped.filter(({ license }) => !free.test(license)).map(({ name, license }) => `${name}: ${license}`),
  ).toEqual([])
})

test('the page of licences matches the lock file (npm run references writes it)', () => {
  expect(readFileSync(licencesPage, 'utf8')).toBe(writtenLicencesPage())
})

test('the chart refuses strangers by default, and Grafana asks who it is', () => {
  expect(parse(read('deploy/helm/firebreak/values.yaml'))).toMatchObject({ networkPolicy: { enabled: true } })
  const { services } = parse(read('deploy/compose/compose.yaml')) as {
    services: Record<string, { environment: Record<string, string> }>
  }
  const { environment } = services['grafana']!
  expect(environment).toMatchObject({ GF_AUTH_ANONYMOUS_ENABLED: 'false', GF_USERS_ALLOW_SIGN_UP: 'false' })
  expect(environment['GF_SECURITY_ADMIN_PASSWORD__FILE']).toBe('/secrets/grafana')
  expect(read('deploy/compose/make-tokens.sh')).toContain('$SECRETS/grafana')
})
