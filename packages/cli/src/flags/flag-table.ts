import { parseArgs } from 'node:util'
import type { CommandIo } from '../command/command.ts'
import { secretSetting } from '../connect/secret-setting.ts'

/** One flag of a command, used by help, completion and parsing. */
export interface FlagSpec {
  /** Long name without dashes. */
  readonly name: string
  readonly short?: string
  /** The placeholder of its value; a flag without one is a switch. */
  readonly value?: string
  /** Its environment variable. */
  readonly env?: string
  /** Its value may be, or contain, a password: `ps` shows flags, so the variable also has a `…_FILE` form. */
  readonly isSecret?: boolean
  readonly default?: string
  readonly help: string
}

/** Values of flags by name; a switch is `'true'`. */
export interface FlagValues extends ReadonlyMap<string, string> {
  /** Whether it was given on the command line, not in the environment or as a default. */
  isGiven(name: string): boolean
}

class ParsedFlags extends Map<string, string> implements FlagValues {
  readonly #given = new Set<string>()

  give(name: string): void {
    this.#given.add(name)
  }

  isGiven(name: string): boolean {
    return this.#given.has(name)
  }
}

/** Parses words against a table of flags; unknown flags throw Node's `ERR_PARSE_ARGS…`. The environment fills gaps. */
export function parseFlags(
  specs: readonly FlagSpec[],
  words: readonly string[],
  io: Pick<CommandIo, 'env' | 'stderr'>,
): { values: FlagValues; positionals: readonly string[] } {
  const options: Record<string, { type: 'string' | 'boolean'; short?: string }> = {}
  for (const { name, short, value } of specs) {
    options[name] = { type: value === undefined ? 'boolean' : 'string', ...(short === undefined ? {} : { short }) }
  }
  const parsed = parseArgs({ args: [...words], options, allowPositionals: true, strict: true })
  const values = new ParsedFlags()
  for (const { name, env: twin, isSecret, default: otherwise } of specs) {
    const word = parsed.values[name]
    const inEnvironment = (variable: string) =>
      isSecret === true
        ? secretSetting({ flag: name, variable }, word as string | undefined, io)
        : (word ?? io.env[variable])
    const given = (twin === undefined ? word : inEnvironment(twin)) ?? otherwise
    if (given !== undefined && given !== false) values.set(name, String(given))
    if (parsed.values[name] !== undefined) values.give(name)
  }
  return { values, positionals: parsed.positionals }
}

/** The lines of a help text for a table of flags. */
export function renderFlags(specs: readonly FlagSpec[]): string {
  const heads = specs.map(
    ({ name, short, value }) =>
      `  ${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`,
  )
  const width = Math.min(26, Math.max(...heads.map((head) => head.length)))
  return specs
    .map(({ help, env, isSecret, default: otherwise }, index) => {
      const twins = isSecret === true ? `env ${env}, or ${env}_FILE for a file` : `env ${env}`
      const extras = [env && twins, otherwise !== undefined && `default ${otherwise}`].filter(Boolean)
      const text = extras.length === 0 ? help : `${help} (${extras.join('; ')})`
      const head = heads[index]!
      return head.length > width ? `${head}\n${' '.repeat(width)}  ${text}` : `${head.padEnd(width)}  ${text}`
    })
    .join('\n')
}
