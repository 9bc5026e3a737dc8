import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { anchorsOf, isTranslation, readPage, root, userPages } from './pages.ts'

test('every link to a file or a heading leads somewhere', () => {
  const broken: string[] = []
  let count = 0
  for (const page of userPages()) {
    const prose = readPage(page).replace(/^```[\s\S]*?^```/gm, '')
    for (const [, target] of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^(https?|mailto):/.test(target!)) continue
      count++
      const [file, anchor] = target!.split('#') as [string, string?]
      const linked = file === '' ? page : join(dirname(page), file)
      if (!existsSync(join(root, linked))) broken.push(`${page}: ${target}`)
      else if (anchor !== undefined && !anchorsOf(readPage(linked)).has(anchor)) broken.push(`${page}: ${target}`)
    }
  }
  expect(count).toBeGreaterThan(50)
  expect(broken).toEqual([])
})

test('every file that CONTRIBUTING and the architecture name exists', () => {
  const named = ['CONTRIBUTING.md', 'docs/guides/architecture.md'].flatMap((page) =>
    Array.from(readPage(page).matchAll(/`((?:packages|test|docs|bench|deploy)\/[\w./-]+\.\w+)`/g), ([, file]) => file!),
  )
  expect(named.length).toBeGreaterThan(20)
  expect(named.filter((file) => !file.includes('NAME') && !existsSync(join(root, file)))).toEqual([])
})

test.each(['docs/', 'docs/zh/'])('the index of %s leads to every page', (folder) => {
  const index = readPage(`${folder}README.md`)
  const isOf = (page: string) => page.startsWith(folder) && isTranslation(page) === isTranslation(folder)
  const pages = userPages().filter((page) => isOf(page) && page !== `${folder}README.md`)
  expect(pages.length).toBeGreaterThan(5)
  for (const page of pages) expect(index).toContain(`](${page.slice(folder.length)}`)
})
