import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { blocksOf, readPage, root, userPages } from './pages.ts'

interface Translated {
  translations(): string[]
  originOf(page: string): { page: string; digest: string } | undefined
  digestOf(page: string): string
}
const { translations, originOf, digestOf } = (await import(
  pathToFileURL(join(root, 'scripts/docs/translated.mjs')).href
)) as Translated

const pages = translations()

test('README, the index and every guide exist in Chinese', () => {
  const guides = userPages().filter((page) => page.startsWith('docs/guides/'))
  expect(guides.length).toBeGreaterThan(20)
  const wanted = ['README.zh.md', 'docs/zh/README.md', ...guides.map((page) => page.replace('docs/', 'docs/zh/'))]
  expect(wanted.filter((page) => !pages.includes(page))).toEqual([])
})

test.each(pages)('%s is as new as the page that it translates', (page) => {
  const origin = originOf(page)!
  // After bringing the translation up to date: npm run translated -- PAGE
  expect([origin.page, origin.digest]).toEqual([origin.page, digestOf(origin.page)])
})

test.each(pages)('the code of %s is that of its origin, which is run; only comments are translated', (page) => {
  const code = (one: string) =>
    blocksOf(one).map(({ language, text }) => `${language}\n${text.replace(/ *(?:#|\/\/) .*$/gm, '')}`)
  expect(code(page)).toEqual(code(originOf(page)!.page))
})

test.each(pages)('%s is Chinese, with as many sections as its origin', (page) => {
  const sections = (one: string) =>
    readPage(one)
      .replace(/^```[\s\S]*?^```/gm, '')
      .match(/^#+ /gm)
  expect(sections(page)).toEqual(sections(originOf(page)!.page))
  const prose = readPage(page).replace(/^```[\s\S]*?^```/gm, '')
  expect(prose.match(/\p{Script=Han}/gu)!.length).toBeGreaterThan(200)
})
