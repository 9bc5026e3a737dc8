import type { OtlpExporterOptions } from '@firebreak/core/metrics'
import type { CommandIo } from './command.ts'

/** Warns on stderr when a Redis or the collector is unreachable, and says when it is back. */
export function stderrLogger({ stderr }: Pick<CommandIo, 'stderr'>): OtlpExporterOptions['logger'] {
  const tell = (data: object, message: string) => void stderr.write(`${message} ${JSON.stringify(data)}\n`)
  return { info: tell, warn: tell }
}
