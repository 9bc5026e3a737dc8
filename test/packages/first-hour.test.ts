import { isFullRun, temporaryFolder } from '@firebreak/testkit'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startBrowser } from '../console/browser.ts'
import { nodes, packAndServe, type Release } from './installing.ts'
import { forms, walk } from './transcript.ts'

let release: Release
let browser: Browser

beforeAll(async () => {
  release = await packAndServe(temporaryFolder('walks'))
  browser = await startBrowser()
}, 120_000)
afterAll(async () => {
  await browser?.close()
  await release?.registry.stop()
})

// Each Node with a different form; a quick run takes the oldest, which needs the most: TypeScript, and a hub on another Node.
const ways = nodes.map((node, index) => ({ node, major: node.major, form: forms.at(-1 - index)! }))

test.each(isFullRun ? ways : ways.slice(0, 1))(
  'from an empty folder to a key in the console, with the published packages: Node $major, $form',
  async ({ node, form }) => {
    const lines: string[] = []
    await walk({ node, form, release, browser, say: (line) => lines.push(line) })
    expect(lines.at(-1)).toMatch(/product_100.*LocalCache/)
  },
  400_000,
)
