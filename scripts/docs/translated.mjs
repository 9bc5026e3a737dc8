// `npm run translated -- [PAGE…]`: lists translations that are older than their pages; with pages, marks these as up to date.
// A translation's first line names its page and a digest of that page's text.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from '../setup.mjs'
import { languageOf, sitePages } from './build.mjs'

const head = /^<!-- translation of: (\S+) \| sha256: ([0-9a-f]{16}) -->\n/

/** The page and digest that a translation was made from, or undefined if its first line does not say. */
export function originOf(page) {
  const found = head.exec(readFileSync(join(root, page), 'utf8'))
  return found === null ? undefined : { page: found[1], digest: found[2] }
}

/** The digest of a page's text, as in the first line of its translation. */
export function digestOf(page) {
  return createHash('sha256')
    .update(readFileSync(join(root, page)))
    .digest('hex')
    .slice(0, 16)
}

/** Every page that is not in English. */
export function translations() {
  return sitePages().filter((page) => languageOf(page) !== 'en')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const page of process.argv.slice(2)) {
    const text = readFileSync(join(root, page), 'utf8')
    const origin = originOf(page)
    if (origin === undefined) throw new Error(`${page} does not begin with: <!-- translation of: PAGE | sha256: … -->`)
    writeFileSync(
      join(root, page),
      text.replace(head, `<!-- translation of: ${origin.page} | sha256: ${digestOf(origin.page)} -->\n`),
    )
  }
  const older = translations().filter((page) => originOf(page)?.digest !== digestOf(originOf(page)?.page ?? page))
  for (const page of older) process.stdout.write(`${page} is older than ${originOf(page)?.page}\n`)
  process.exit(older.length === 0 ? 0 : 1)
}
