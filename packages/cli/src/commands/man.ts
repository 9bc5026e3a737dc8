import { readFileSync } from 'node:fs'
import { type Command, type CommandEntry, loadAll } from '../command/command.ts'
import { manPage } from '../command/man-page.ts'

/** `firebreak man`, for the commands of its own registry. */
export function manCommand(registry: readonly CommandEntry[]): Command {
  return {
    help: `The manual page of all commands, as troff.

Examples:
  firebreak man | man -l -
  firebreak man > /usr/local/share/man/man1/firebreak.1
`,
    async run(_args, io) {
      const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
        version: string
      }
      io.stdout.write(manPage(await loadAll(registry), version))
      return 0
    },
  }
}
