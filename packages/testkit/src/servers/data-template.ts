import { cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const cache = join(dirname(fileURLToPath(import.meta.url)), '../../../../node_modules/.cache/firebreak-servers')

/**
 * A database's fresh data folder takes seconds to make and milliseconds to copy: it is made once per checkout and
 * copied for every server. `make` fills a folder that is renamed into place when it is whole, so that two test runs
 * may do it at once.
 */
export async function copyDataTemplate(
  name: string,
  make: (folder: string) => Promise<void>,
  target: string,
): Promise<void> {
  const template = join(cache, name)
  if (!existsSync(template)) {
    mkdirSync(cache, { recursive: true })
    const making = mkdtempSync(join(cache, `${name}.making-`))
    try {
      await make(join(making, 'data'))
      renameSync(join(making, 'data'), template)
    } catch (error) {
      if (!existsSync(template)) throw error
    } finally {
      rmSync(making, { recursive: true, force: true })
    }
  }
  cpSync(template, target, { recursive: true })
}
