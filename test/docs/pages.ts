import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/** A fenced block of a page. */
export interface CodeBlock {
  /** `docs/guides/client.md:12`, the line of its fence. */
  readonly place: string
  /** The language after the fence: `ts`, `sh`, or nothing. */
  readonly language: string
  readonly text: string
}

/** The pages that a user reads: README, CONTRIBUTING, and everything in docs but the decisions. */
export function userPages(): string[] {
  const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md') && file !== 'decisions.md')
    .map((file) => `docs/${file}`)
  return ['README.md', 'README.zh.md', 'CONTRIBUTING.md', 'deploy/README.md', ...docs.sort()]
}

/** The pages that packages are published with. */
export function packagePages(): string[] {
  const folders = readdirSync(join(root, 'packages')).sort()
  return folders.map((name) => `packages/${name}/README.md`).filter((page) => existsSync(join(root, page)))
}

/** Every page whose code is compiled and run; for a translation that is its origin (translations.test.ts). */
export function codePages(): string[] {
  return [...userPages().filter((page) => !isTranslation(page)), ...packagePages()]
}

/** True for a page that is a translation of another. */
export function isTranslation(page: string): boolean {
  return page.startsWith('docs/zh/') || page.endsWith('.zh.md')
}

export function readPage(page: string): string {
  return readFileSync(join(root, page), 'utf8')
}

export function blocksOf(page: string): CodeBlock[] {
  const blocks: CodeBlock[] = []
  let open: { place: string; language: string; lines: string[] } | undefined
  for (const [index, line] of readPage(page).split('\n').entries()) {
    const fence = line.match(/^\s*```(\w*)/)
    if (open === undefined && fence !== null) open = { place: `${page}:${index + 1}`, language: fence[1]!, lines: [] }
    else if (open !== undefined && fence !== null) {
      blocks.push({ place: open.place, language: open.language, text: open.lines.join('\n') })
      open = undefined
    } else open?.lines.push(line)
  }
  if (open !== undefined) throw new Error(`${open.place}: the block does not end`)
  return blocks
}

/** The anchors of a page's headings, as GitHub makes them. */
export function anchorsOf(markdown: string): Set<string> {
  const headings = markdown.replace(/^```[\s\S]*?^```/gm, '').matchAll(/^#+ (.+)$/gm)
  return new Set(
    Array.from(headings, ([, heading]) =>
      heading!
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .trim()
        .replace(/\s/g, '-'),
    ),
  )
}
