import type { Runtime } from '@firebreak/core'
import type { ResolvedProxyOptions } from '../options.ts'
import { probeRawHandles, type RawHandles, rawHandles } from './probe-raw.ts'

/** The raw handles of this Node version are checked once per thread. */
let probed: Promise<string | undefined> | undefined

/**
 * Decides between public sockets and raw handles: the latter if requested and available, or by default if a check
 * passes. TLS and unix sockets only have public ones.
 */
export async function chooseTransport(
  { transport, tls, path, logger }: Pick<ResolvedProxyOptions, 'transport' | 'tls' | 'path' | 'logger'>,
  runtime: Pick<Runtime, 'timers'>,
  handles: RawHandles = rawHandles,
): Promise<'net' | 'raw'> {
  if (transport === 'net' || tls !== undefined || path !== undefined) return 'net'
  if (transport === 'raw') return handles.transports === undefined ? 'net' : 'raw'
  const reason = await (handles === rawHandles
    ? (probed ??= probeRawHandles(runtime))
    : probeRawHandles(runtime, handles))
  if (reason === undefined) return 'raw'
  logger.info({ reason }, 'the proxy uses public sockets: raw handles failed the check at startup')
  return 'net'
}
