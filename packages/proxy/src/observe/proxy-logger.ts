import { plainLines } from '@firebreak/core'
import type { OtlpExporterOptions } from '@firebreak/core/metrics'

/** Logs when something that the proxy needs becomes unreachable, and when it recovers. */
export type ProxyLogger = OtlpExporterOptions['logger']

/** A log entry, as passed between threads. */
export interface LogLine {
  readonly level: keyof ProxyLogger
  readonly data: object
  readonly message: string
}

/** A logger that passes each entry on as a line. */
export function lineLogger(write: (line: LogLine) => void): ProxyLogger {
  return {
    info: (data, message) => write({ level: 'info', data, message }),
    warn: (data, message) => write({ level: 'warn', data, message }),
  }
}

/** Logs as warnings of the process. */
export const processWarnings: ProxyLogger = lineLogger(({ data, message }) =>
  process.emitWarning(plainLines(`${message} ${JSON.stringify(data)}`), { type: 'FirebreakWarning' }),
)
