import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const page = () => readFileSync(join(root, 'docs/reference/errors.md'), 'utf8')
const root = join(dirname(fileURLToPath(import.meta.url)), '..')

test('every error code in the sources is in docs/reference/errors.md', () => {
  const documented = new Set(page().match(/FB_[A-Z0-9_]+/g))
  const used = new Set<string>()
  for (const room of readdirSync(join(root, 'packages'))) {
    const folder = join(root, 'packages', room, 'src')
    for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
      if (!/\.tsx?$/.test(file) || file.endsWith('.test.ts')) continue
      for (const [, code] of readFileSync(join(folder, file), 'utf8').matchAll(/'(FB_[A-Z0-9_]+)'/g)) used.add(code!)
    }
  }
  expect(used.size).toBeGreaterThan(4)
  expect([...used].filter((code) => !documented.has(code)).sort()).toEqual([])
})

test('every code on the page is in the sources: removed codes are removed from the page too', () => {
  const sources = readdirSync(join(root, 'packages')).flatMap((room) => {
    const folder = join(root, 'packages', room, 'src')
    return readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.tsx?$/.test(file) && !file.endsWith('.test.ts'))
      .map((file) => readFileSync(join(folder, file), 'utf8'))
  })
  const named = new Set(sources.flatMap((text) => text.match(/FB_[A-Z0-9_]+/g) ?? []))
  const codes = [...page().matchAll(/^\| `(FB_[A-Z0-9_]+)`/gm)].map((match) => match[1]!)
  expect(codes.filter((code) => !named.has(code))).toEqual([])
})

test('the page of errors has one sorted table per package, and no code twice', () => {
  const sections = page().split(/^## /m).slice(1)
  const names = sections.map((section) => section.slice(0, section.indexOf('\n')))
  expect(new Set(names).size).toBe(names.length)
  const all: string[] = []
  for (const section of sections) {
    expect(section.match(/^\| code /gm)).toHaveLength(1)
    const codes = [...section.matchAll(/^\| `(FB_[A-Z0-9_]+)`/gm)].map((match) => match[1]!)
    expect(codes).toEqual([...codes].sort())
    all.push(...codes)
  }
  expect(all.filter((code, index) => all.indexOf(code) !== index)).toEqual([])
})
