import type { ConnectTarget } from '../transport/transport.ts'
import { askOnce } from './ask-once.ts'
import type { ConnectionState } from './identity.ts'
import type { UpstreamSettings } from './upstream-connection.ts'

/** What is behind a proxy: one Redis, a cluster, or Sentinels. */
export type UpstreamMode = 'single' | 'cluster' | 'sentinel'

/** Asks the addresses what they are; a single Redis where none says (it may want a password that only clients have). */
export async function findMode(
  targets: readonly ConnectTarget[],
  state: ConnectionState,
  settings: UpstreamSettings,
): Promise<UpstreamMode> {
  for (const target of targets) {
    try {
      const info = String(await askOnce(target, state, settings, ['INFO', 'server']))
      const mode = /redis_mode:(\w+)/.exec(info)?.[1]
      return mode === 'cluster' || mode === 'sentinel' ? mode : 'single'
    } catch {
      // The next one may answer.
    }
  }
  return 'single'
}
