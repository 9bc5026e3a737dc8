import { readFileSync } from 'node:fs'
import { type CommandIo, UsageError } from '../command/command.ts'

/** What flags and their twins in the environment say. An error names the one of the two that was given. */
export class SettingReader<Name extends string> {
  readonly #values: Partial<Record<Name, string | boolean | string[]>>
  readonly #env: CommandIo['env']
  readonly #prefix: string

  /** A twin is the flag's name in capitals behind `prefix`. */
  constructor(values: Partial<Record<Name, string | boolean | string[]>>, env: CommandIo['env'], prefix: string) {
    this.#values = values
    this.#env = env
    this.#prefix = prefix
  }

  /** How whoever gave the value knows it. */
  nameOf(flag: Name): string {
    return this.#values[flag] === undefined && this.#env[this.#twinOf(flag)] !== undefined
      ? this.#twinOf(flag)
      : `--${flag}`
  }

  text(flag: Name): string | undefined {
    const value = (this.#values[flag] as string | undefined) ?? this.#env[this.#twinOf(flag)]
    // A variable of the shell that is not set must not become a default that nobody has asked for.
    if (value === '') throw new UsageError(`${this.nameOf(flag)} is empty; give it a value, or leave it out`)
    return value
  }

  whole(flag: Name, least: number, most: number = Number.MAX_SAFE_INTEGER): number | undefined {
    const value = this.text(flag)
    if (value === undefined) return undefined
    if (/^\d+$/.test(value) && Number(value) >= least && Number(value) <= most) return Number(value)
    const bound = most === Number.MAX_SAFE_INTEGER ? `from ${least} on` : `from ${least} to ${most}`
    throw this.invalid(flag, `a whole number ${bound}`)
  }

  oneOf<Value extends string>(flag: Name, allowed: readonly Value[]): Value | undefined {
    const value = this.text(flag)
    if (value === undefined || allowed.includes(value as Value)) return value as Value | undefined
    throw this.invalid(flag, `one of ${allowed.join(', ')}`)
  }

  /** A switch, whose twin is `true` or `false`. */
  isOn(flag: Name): boolean | undefined {
    const given = this.#values[flag]
    if (typeof given === 'boolean') return given
    const value = this.oneOf(flag, ['true', 'false'])
    return value === undefined ? undefined : value === 'true'
  }

  /** A flag that may be given several times; its twin has a line for each. */
  list(flag: Name): readonly string[] | undefined {
    const given = this.#values[flag]
    if (Array.isArray(given)) return given
    return this.text(flag)
      ?.split('\n')
      .filter((line) => line !== '')
  }

  /** The content of the file that a flag names. */
  file(flag: Name): Buffer | undefined {
    const path = this.text(flag)
    if (path === undefined) return undefined
    try {
      return readFileSync(path)
    } catch (cause) {
      throw new UsageError(`${this.nameOf(flag)} names a file that cannot be read: ${(cause as Error).message}`, {
        cause,
      })
    }
  }

  invalid(flag: Name, expected: string): UsageError {
    return new UsageError(`${this.nameOf(flag)} is "${this.text(flag)}"; it must be ${expected}`)
  }

  #twinOf(flag: Name): string {
    return `${this.#prefix}${flag.toUpperCase().replaceAll('-', '_')}`
  }
}
