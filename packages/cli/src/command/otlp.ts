import { type OtlpExporterOptions, type OtlpOptions, readOtlpVariables } from '@firebreak/core'
import type { CommandIo } from './command.ts'

/** Where metrics are pushed to: what a flag says, then OpenTelemetry's own variables; undefined: nowhere. */
export function otlpOf(
  endpoint: string | undefined,
  { env, stderr }: Pick<CommandIo, 'env' | 'stderr'>,
): OtlpOptions | undefined {
  const { options, warnings } = readOtlpVariables(env)
  for (const warning of warnings) stderr.write(`${warning}\n`)
  const all = { ...options, ...(endpoint !== undefined && { endpoint }) }
  return all.endpoint === undefined || all.isDisabled === true ? undefined : all
}

/** Tells on stderr that a Redis or the collector is away, and that it is back. */
export function stderrLogger({ stderr }: Pick<CommandIo, 'stderr'>): OtlpExporterOptions['logger'] {
  const tell = (data: object, message: string) => void stderr.write(`${message} ${JSON.stringify(data)}\n`)
  return { info: tell, warn: tell }
}
