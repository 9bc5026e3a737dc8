import type { KeyView } from '@firebreak/core'

/** What handles a key, in at most 14 characters: its strategy, unless its services only send reports, so that nobody carries it out. */
export function handledBy({ strategy, carrier }: Pick<KeyView, 'strategy' | 'carrier'>): string | undefined {
  return carrier === 'reports' ? 'reports only' : strategy?.strategy
}
