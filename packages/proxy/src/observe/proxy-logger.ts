import type { OtlpExporterOptions } from '@firebreak/core/metrics'

/** Who is told when something that the proxy needs is away, and when it is back. */
export type ProxyLogger = OtlpExporterOptions['logger']

/** What is told, as it goes from one thread to another. */
export interface LogLine {
  readonly level: keyof ProxyLogger
  readonly data: object
  readonly message: string
}

/** A logger that makes lines of what it is told. */
export function lineLogger(write: (line: LogLine) => void): ProxyLogger {
  return {
    info: (data, message) => write({ level: 'info', data, message }),
    warn: (data, message) => write({ level: 'warn', data, message }),
  }
}

/** Tells by warnings of the process. */
export const processWarnings: ProxyLogger = lineLogger(({ data, message }) =>
  process.emitWarning(`${message} ${JSON.stringify(data)}`, { type: 'FirebreakWarning' }),
)
