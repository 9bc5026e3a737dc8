import { didYouMean, InvalidOptionError, version } from '@firebreak/core'
import { plainText } from '../output/plain-text.ts'
import { type CommandEntry, type CommandIo, UsageError } from './command.ts'

/** Finds the command that the words name and runs it; the exit code of the process. */
export async function runCommand(
  commands: readonly CommandEntry[],
  words: readonly string[],
  io: CommandIo,
): Promise<number> {
  const [name, ...rest] = words
  if (name === '--version' || name === '-v' || name === 'version') {
    io.stdout.write(`${version}\n`)
    return 0
  }
  const isHelp = name === undefined || name === 'help' || name === '--help' || name === '-h'
  const wanted = isHelp ? rest[0] : name
  if (wanted === undefined) {
    io.stdout.write(overview(commands))
    return 0
  }
  const entry = commands.find((candidate) => candidate.name === wanted)
  if (entry === undefined) {
    const close = didYouMean(
      wanted,
      commands.map((candidate) => candidate.name),
    )
    io.stderr.write(
      `firebreak: there is no command "${wanted}"${close ? `; did you mean "${close}"?` : ''}\nSee: firebreak help\n`,
    )
    return 2
  }
  const command = await entry.load()
  if (isHelp || rest.includes('--help') || rest.includes('-h')) {
    io.stdout.write(command.help)
    return 0
  }
  try {
    return await command.run(rest, io)
  } catch (error) {
    const isUsage = isWrongUsage(error)
    io.stderr.write(`firebreak ${name}: ${plainText(takenPort(error, rest, io) ?? (error as Error).message)}\n`)
    if (isUsage) io.stderr.write(`See: firebreak help ${name}\n`)
    else if (io.env['FIREBREAK_DEBUG']) io.stderr.write(`${(error as Error).stack}\n`)
    return isUsage ? 2 : 1
  }
}

/** The sentence for a port that somebody else has: which one, and the flag that names another. */
function takenPort(error: unknown, words: readonly string[], { env }: CommandIo): string | undefined {
  const { code, port } = ((error as Error).cause ?? error) as NodeJS.ErrnoException & { port?: number }
  if (code !== 'EADDRINUSE' || port === undefined) return undefined
  const isIt = (value: string | undefined) => value === String(port)
  const at = words.findIndex((word, index) => isIt(words[index + 1]) || word.endsWith(`-port=${port}`))
  const flag = at >= 0 && words[at]!.startsWith('--') ? words[at]!.split('=')[0] : '--port'
  const variable = Object.keys(env).find((name) => /^FIREBREAK_.*PORT$/.test(name) && isIt(env[name]))
  return `Port ${port} is in use. Choose another with ${flag}${variable === undefined ? '' : ` or ${variable}`}.`
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
