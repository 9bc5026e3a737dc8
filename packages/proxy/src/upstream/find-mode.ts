import { parseInfo, serverModeOf } from '@firebreak/core/resp'
import type { ConnectTarget } from '../transport/transport.ts'
import { type AskSettings, askOnce } from './ask-once.ts'
import type { Identity } from './identity.ts'

/** What is behind a proxy: one Redis, a cluster, or Sentinels. */
export type UpstreamMode = 'single' | 'cluster' | 'sentinel'

/** Asks the addresses what they are; a single Redis if none says (it may want a password that only clients have). */
export async function findMode(
  targets: readonly ConnectTarget[],
  identity: Identity,
  settings: AskSettings,
): Promise<UpstreamMode> {
  for (const target of targets) {
    try {
      const mode = serverModeOf(parseInfo(String(await askOnce(target, identity, settings, ['INFO', 'server']))))
      return mode === 'standalone' ? 'single' : mode
    } catch {
      // The next one may answer.
    }
  }
  return 'single'
}
