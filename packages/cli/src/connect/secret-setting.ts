import { secretFlagWarning } from '@firebreak/core/settings'
import type { CommandIo } from '../command/command.ts'
import { readSecret } from '../flags/command-settings.ts'

/** A setting that may hold a secret: its flag without dashes, and its variable. */
export interface SecretSetting {
  readonly flag: string
  readonly variable: string
}

/**
 * Its value: from the flag (with a warning, because others see it in `ps`), from the variable, or from the file named
 * by `VARIABLE_FILE`.
 */
export function secretSetting(
  { flag, variable }: SecretSetting,
  given: string | undefined,
  { env, stderr }: Pick<CommandIo, 'env' | 'stderr'>,
): string | undefined {
  if (given !== undefined) {
    const warning = secretFlagWarning(`--${flag}`, given, variable)
    if (warning !== undefined) stderr.write(`${warning}\n`)
    return given
  }
  const place = `${variable}_FILE`
  const file = env[place]
  return env[variable] ?? (file === undefined ? undefined : readSecret(place, file))
}
