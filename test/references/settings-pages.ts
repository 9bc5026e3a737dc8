import { readFileSync } from 'node:fs'
import { settingsReference } from '@firebreak/core/settings'
import { settingTables } from 'firebreak/cli'

/** The page of all settings; the tables between its marks are made out of the commands' own. */
export const settingsPage = new URL('../../docs/reference/config.md', import.meta.url)

/** The page as it should be, with the text between `<!-- settings NAME -->` and `<!-- end -->` generated from the tables. */
export function writtenSettingsPage(): string {
  let page = readFileSync(settingsPage, 'utf8')
  for (const table of settingTables) {
    const block = new RegExp(`(<!-- settings ${table.command} -->\\n)[^]*?(\\n<!-- end -->)`)
    if (!block.test(page)) throw new Error(`config.md has no place for the settings of ${table.command}`)
    page = page.replace(block, (_, begin: string, end: string) => `${begin}\n${settingsReference(table)}\n${end}`)
  }
  return page
}
