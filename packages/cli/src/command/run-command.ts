import { didYouMean, InvalidOptionError, plainText, version } from '@firebreak/core'
import { plainStream } from '../output/plain-stream.ts'
import { type Command, type CommandEntry, type CommandIo, UsageError } from './command.ts'

/** Finds the command named by the words and runs it; returns the exit code of the process. */
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
      `firebreak: unknown command "${plainText(wanted)}"${close ? `; did you mean "${close}"?` : ''}\nSee: firebreak help\n`,
    )
    return 2
  }
  const command = await entry.load()
  const plain = { ...io, stdout: plainStream(io.stdout), stderr: plainStream(io.stderr) }
  if (isHelp || rest.includes('--help') || rest.includes('-h')) {
    io.stdout.write(command.help)
    return 0
  }
  const stop = new Stop(command.drawsScreen ? io : plain, io.signal)
  try {
    if (command.finishes) return await command.run(rest, stop.io)
    return await Promise.race([command.run(rest, stop.io), stop.stopped])
  } catch (error) {
    const isUsage = isWrongUsage(error)
    const said = takenPort(error, rest, io) ?? unknownFlag(error, command) ?? (error as Error).message
    io.stderr.write(`firebreak ${name}: ${linesOf(said)}\n`)
    if (isUsage) plain.stderr.write(`See: firebreak help ${name}\n`)
    else if (io.env['FIREBREAK_DEBUG']) plain.stderr.write(`${(error as Error).stack}\n`)
    return isUsage ? 2 : 1
  }
}

/**
 * Stops a command that does not watch the signal itself: it only waits, mostly for a hub or a store, and would wait on.
 */
class Stop {
  readonly io: CommandIo
  /** Rejects when the command is stopped. */
  readonly stopped: Promise<never>
  #isWatched = false

  constructor(io: CommandIo, signal: AbortSignal) {
    const watched = () => {
      this.#isWatched = true
      return signal
    }
    this.io = Object.defineProperty({ ...io }, 'signal', { get: watched, enumerable: true })
    this.stopped = new Promise((_, reject) => {
      const stop = () => {
        if (!this.#isWatched) reject(new Error('stopped before it was done'))
      }
      signal.addEventListener('abort', stop, { once: true })
    })
    this.stopped.catch(() => {})
  }
}

/** A message of several lines, each indented, so that foreign text cannot pose as ours. */
function linesOf(message: string): string {
  return message.trimEnd().split(/\r?\n/).map(plainText).join('\n  ')
}

/** Node's message for an unknown flag, with the closest known one. */
function unknownFlag(error: unknown, { flags = [] }: Command): string | undefined {
  if ((error as NodeJS.ErrnoException).code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION') return undefined
  const option = (error as Error).message.match(/'(-[^']*)'/)?.[1]
  if (option === undefined) return undefined
  const close = didYouMean(option, ['--help', ...flags.map((flag) => `--${flag}`)])
  return `Unknown option '${option}'${close === undefined ? '' : `; did you mean '${close}'?`}`
}

/** The message for a port that is in use: which one, and the flag to choose another. */
function takenPort(error: unknown, words: readonly string[], { env }: CommandIo): string | undefined {
  const { code, port } = ((error as Error).cause ?? error) as NodeJS.ErrnoException & { port?: number }
  if (code !== 'EADDRINUSE' || port === undefined) return undefined
  const isIt = (value: string | undefined) => value === String(port)
  const at = words.findIndex((word, index) => isIt(words[index + 1]) || word.endsWith(`-port=${port}`))
  const flag = at >= 0 && words[at]!.startsWith('--') ? words[at]!.split('=')[0] : '--port'
  const variable = Object.keys(env).find((name) => /^FIREBREAK_.*PORT$/.test(name) && isIt(env[name]))
  return `Port ${port} is in use. Choose another with ${flag}${variable === undefined ? '' : ` or ${variable}`}.`
}

/** True for wrong words, flags or values. */
function isWrongUsage(error: unknown): boolean {
  if (error instanceof UsageError || error instanceof InvalidOptionError) return true
  const { code } = error as { code?: unknown }
  // By its code: only commands that need the hub load its modules.
  return typeof code === 'string' && (code === 'FB_HUB_CONFIG' || code.startsWith('ERR_PARSE_ARGS'))
}

/** The same for all commands; scripts rely on it. */
const exitCodes = `Exit codes: 0 done; 1 failed; 2 wrong arguments, flags or settings, nothing was done;
  3 done, and the condition was met (find --fail-on, rules apply --diff).
`

function overview(commands: readonly CommandEntry[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length), 4)
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`)
  return `Firebreak: hot-key protection for Redis\n\nUsage: firebreak COMMAND [OPTIONS]\n\n${lines.join('\n')}\n\nHelp for a command: firebreak help COMMAND\n\n${exitCodes}`
}
