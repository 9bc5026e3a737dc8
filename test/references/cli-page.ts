import { commands, loadAll } from 'firebreak/cli'

/** The page of all commands, written from their help. */
export const cliPage = new URL('../../docs/reference/cli.md', import.meta.url)

const head = `# Commands

What \`firebreak help COMMAND\` prints, for every command. Written by \`npm run references\`.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done and the condition of \`--fail-on\` or \`--diff\` was met.

`

/** The page as it should be. */
export async function writtenCliPage(): Promise<string> {
  const all = await loadAll(commands)
  const list = all.map(({ name, summary }) => `| [\`${name}\`](#firebreak-${name}) | ${summary} |`)
  const sections = all.map(({ name, help }) => `## firebreak ${name}\n\n\`\`\`text\n${help.trim()}\n\`\`\`\n`)
  return `${head}| command | what it does |\n|---|---|\n${list.join('\n')}\n\n${sections.join('\n')}`
}
