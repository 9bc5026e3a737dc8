import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { fragments, wholeOf } from './fragments.ts'
import { blocksOf, type CodeBlock, codePages, root } from './pages.ts'

// Under node_modules, where the packages are found as by an application and no tool looks for sources.
const cache = join(root, 'node_modules/.cache')
mkdirSync(cache, { recursive: true })
const folder = mkdtempSync(join(cache, 'firebreak-docs-'))
afterAll(() => rmSync(folder, { recursive: true }))

const blocks = codePages()
  .flatMap(blocksOf)
  .filter(({ language }) => language === 'ts' || language === 'js')

test('every block of TypeScript and JavaScript in the pages compiles against the packages', () => {
  expect(blocks.length).toBeGreaterThan(25)
  expect(compile(blocks)).toBe('')
}, 180_000)

test('a block that calls what is not there, or gives a wrong option, does not compile', () => {
  const wrong =
    "import { protect } from 'firebreak'\nimport { Redis } from 'ioredis'\nprotect(new Redis(), { serviceID: '' })"
  const output = compile([{ place: 'wrong.md:1', language: 'ts', text: wrong }])
  expect(output).toContain('wrong.md-1')
  expect(output).toContain('serviceID')
})

test('every excused fragment is one block of its page', () => {
  for (const { page, holds } of fragments) {
    const held = blocks.filter(({ place, text }) => place.startsWith(`${page}:`) && text.includes(holds))
    expect(held, `${page}: ${holds}`).toHaveLength(1)
  }
})

/** The compiler's messages about blocks; empty if all is well. */
function compile(all: readonly CodeBlock[]): string {
  const files = all.map((block) => {
    const file = `${block.place.replaceAll('/', '-').replace(':', '-')}${endingOf(block)}`
    writeFileSync(join(folder, file), wholeOf(block, 'compile'))
    return file
  })
  // Decorators are Nest's; a block may declare what it does not use.
  const compilerOptions = {
    ...{ composite: false, declaration: false, declarationMap: false, sourceMap: false, incremental: false },
    ...{ noEmit: true, noUnusedLocals: false, rewriteRelativeImportExtensions: false, moduleDetection: 'force' },
    ...{ experimentalDecorators: true, erasableSyntaxOnly: false, allowJs: true, checkJs: true },
    verbatimModuleSyntax: false,
  }
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  const settings = { extends: join(root, 'tsconfig.base.json'), compilerOptions, files }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(settings))
  const { stdout, stderr, error } = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', folder], { encoding: 'utf8' })
  if (error !== undefined) throw error
  return `${stdout}${stderr}`
}

function endingOf({ language, text }: CodeBlock): string {
  if (language === 'ts') return '.ts'
  return text.includes('require(') ? '.cjs' : '.mjs'
}
