import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { temporaryFolder } from '@firebreak/testkit'
import { beforeAll, expect, test } from 'vitest'
import { root } from './pages.ts'

interface Site {
  sitePages(): string[]
  buildSite(out: string): string[]
  languageOf(page: string): string
}
interface Found {
  readonly file: string
  readonly title: string
}
type Find = (index: readonly unknown[], query: string, language: string) => Found[]

const { sitePages, buildSite } = (await import(pathToFileURL(join(root, 'scripts/docs/build.mjs')).href)) as Site
const out = temporaryFolder('site')
let files: string[]
const read = (file: string) => readFileSync(join(out, file), 'utf8')
const pages = () => files.filter((file) => file.endsWith('.html'))

beforeAll(() => {
  files = buildSite(out)
})

test('every page of the repository is a page of the site', () => {
  expect(pages()).toHaveLength(sitePages().length)
  expect(pages()).toContain('index.html')
  expect(pages()).toContain('docs/guides/runbook.html')
})

test('every link within the site leads to a file, and to a heading where it names one', () => {
  const broken: string[] = []
  let count = 0
  for (const page of pages()) {
    for (const [, target] of read(page).matchAll(/(?:href|src)="([^"]+)"/g)) {
      if (/^(https?|mailto):/.test(target!)) continue
      count++
      const [file, anchor] = target!.split('#') as [string, string?]
      const linked = file === '' ? page : join(dirname(page), file)
      if (!existsSync(join(out, linked))) broken.push(`${page}: ${target}`)
      else if (anchor !== undefined && !read(linked).includes(`id="${anchor}"`)) broken.push(`${page}: ${target}`)
    }
  }
  expect(count).toBeGreaterThan(500)
  expect(broken).toEqual([])
})

test('a page needs no other host: no script, style or picture from elsewhere', () => {
  for (const page of pages()) expect(read(page)).not.toMatch(/(?:src|<link[^>]*href)="https?:/)
})

test('a page fits a phone, has a dark theme, a search, and states its language', () => {
  const page = read('docs/guides/first-hour.html')
  expect(page).toContain('<html lang="en">')
  expect(page).toContain('width=device-width')
  expect(page).toContain('<input type="search"')
  const style = read('site/page.css')
  expect(style).toContain('@media (max-width: 800px)')
  expect(style).toContain('color-scheme: light dark')
})

test('the search finds sections that contain every word, best first, and nothing for unknown words', () => {
  const scope: { firebreakIndex?: unknown[]; firebreakFind?: Find } = {}
  for (const file of ['site/search-index.js', 'site/search.js']) {
    new Function('globalThis', 'document', read(file))(scope, undefined)
  }
  const find = (query: string) => scope.firebreakFind!(scope.firebreakIndex!, query, 'en')
  expect(find('switch it off')[0]).toMatchObject({ file: 'docs/guides/runbook.html#switch-it-off', title: 'Runbook' })
  expect(find('splitCounter').length).toBeGreaterThan(0)
  expect(find('xyzzy-nowhere')).toEqual([])
  expect(find('  ')).toEqual([])
})
