import type { CachedReply } from './cached-reply.ts'

/** Gets a load's reply; undefined where the caller has to ask Redis itself. Called in the order of the readers. */
export type LoadedHandler = (reply: CachedReply | undefined) => void

/** A load in flight: many readers, one read of Redis. */
export interface Load {
  readers: LoadedHandler[]
  /** True where a change became known since it was sent: what it brings is not kept. */
  isPoisoned: boolean
}

/** Tells all who still wait for a load, once. */
export function finish(load: Load, reply: CachedReply | undefined): void {
  const { readers } = load
  load.readers = []
  for (const reader of readers) reader(reply)
}
