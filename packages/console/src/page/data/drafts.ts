import { signedIn } from './access.ts'

interface Draft {
  readonly who: string | undefined
  readonly value: unknown
}

/**
 * What somebody has begun and not saved: it outlives a look at another page and a session that ended meanwhile, and is nobody
 * else's. In the memory of this page only, since it may hold keys.
 */
const drafts = new Map<string, Draft>()
/** The oldest goes. */
const maxDrafts = 20

export function keepDraft(name: string, value: unknown): void {
  drafts.delete(name)
  drafts.set(name, { who: signedIn.peek()?.who, value })
  if (drafts.size > maxDrafts) drafts.delete(drafts.keys().next().value!)
}

/** What this person left under the name. */
export function keptDraft<T>(name: string): T | undefined {
  const draft = drafts.get(name)
  return draft !== undefined && draft.who === signedIn.peek()?.who ? (draft.value as T) : undefined
}

export function dropDraft(name: string): void {
  drafts.delete(name)
}

/** Asks before the page is closed with something unsaved on it. */
export function guardDrafts(): void {
  addEventListener('beforeunload', (event) => {
    if (drafts.size > 0) event.preventDefault()
  })
}
