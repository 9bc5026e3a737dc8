import { didYouMean, InvalidOptionError } from '@firebreak/core'
import { type CommandEntry, type CommandIo, UsageError } from './command.ts'

/** Finds the command that the words name and runs it; the exit code of the process. */
export async function runCommand(
  commands: readonly CommandEntry[],
  words: readonly string[],
  io: CommandIo,
): Promise<number> {
  const [name, ...rest] = words
  if (name === undefined || name === 'help' || name === '--help' || name === '-h') {
    const wanted = commands.find((command) => command.name === rest[0])
    io.stdout.write(wanted === undefined ? overview(commands) : (await wanted.load()).help)
    return 0
  }
  const entry = commands.find((candidate) => candidate.name === name)
  if (entry === undefined) {
    const close = didYouMean(
      name,
      commands.map((candidate) => candidate.name),
    )
    io.stderr.write(
      `firebreak: there is no command "${name}"${close ? `; did you mean "${close}"?` : ''}\nSee: firebreak help\n`,
    )
    return 2
  }
  const command = await entry.load()
  if (rest.includes('--help') || rest.includes('-h')) {
    io.stdout.write(command.help)
    return 0
  }
  try {
    return await command.run(rest, io)
  } catch (error) {
    const isUsage = isWrongUsage(error)
    io.stderr.write(`firebreak ${name}: ${(error as Error).message}\n`)
    if (isUsage) io.stderr.write(`See: firebreak help ${name}\n`)
    else if (io.env['FIREBREAK_DEBUG']) io.stderr.write(`${(error as Error).stack}\n`)
    return isUsage ? 2 : 1
  }
}

/** What was asked for is not possible: words, flags and their values. */
function isWrongUsage(error: unknown): boolean {
  if (error instanceof UsageError || error instanceof InvalidOptionError) return true
  return (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS') === true
}

function overview(commands: readonly CommandEntry[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length), 4)
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`)
  return `Firebreak: hot-key protection for Redis\n\nUsage: firebreak COMMAND [OPTIONS]\n\n${lines.join('\n')}\n\nHelp on one: firebreak help COMMAND\n`
}
