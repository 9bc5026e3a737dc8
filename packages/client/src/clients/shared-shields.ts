import { emitProcessWarning, Shield, type ShieldOptions, type Warning } from '@firebreak/shield'

/** A client's part in a shield that it shares with others. */
export interface ShieldUser {
  readonly shield: Shield
  release(): void
}

/** What a client wants to be told; the client holds it, and the shield only knows of it. */
export interface WarningListener {
  readonly onWarning: ((warning: Warning) => void) | undefined
}

interface SharedShield {
  readonly options: ShieldOptions
  readonly shield: Shield
  readonly listeners: Set<WeakRef<WarningListener>>
}

const sharedShields: SharedShield[] = []

/** The shield of all clients with these options, made for the first and closed with the last. */
export function shareShield(options: ShieldOptions, listener: WarningListener): ShieldUser {
  const shared = sharedShields.find((candidate) => isSame(candidate.options, options)) ?? makeShared(options)
  const reference = new WeakRef(listener)
  shared.listeners.add(reference)
  return { shield: shared.shield, release: () => release(shared, reference) }
}

function makeShared(options: ShieldOptions): SharedShield {
  const listeners: SharedShield['listeners'] = new Set()
  const shield = new Shield({ ...options, onWarning: (warning) => tell(listeners, warning) })
  const shared = { options, shield, listeners }
  sharedShields.push(shared)
  return shared
}

/** Tells each listener once, however many clients gave it. */
function tell(listeners: SharedShield['listeners'], warning: Warning): void {
  const told = new Set<(warning: Warning) => void>()
  for (const reference of listeners) {
    const listener = reference.deref()
    if (listener !== undefined) told.add(listener.onWarning ?? emitProcessWarning)
  }
  // The first client is added when its shield stands already.
  if (listeners.size === 0) queueMicrotask(() => listeners.size > 0 && tell(listeners, warning))
  for (const onWarning of told) {
    try {
      onWarning(warning)
    } catch {
      // It is the application's; the others are told all the same.
    }
  }
}

function release(shared: SharedShield, listener: WeakRef<WarningListener>): void {
  if (!shared.listeners.delete(listener) || shared.listeners.size > 0) return
  sharedShields.splice(sharedShields.indexOf(shared), 1)
  shared.shield.close()
}

function isSame(a: ShieldOptions, b: ShieldOptions): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]) as Set<keyof ShieldOptions>
  return [...names].every((name) => a[name] === b[name] || (isData(name) && isEqual(a[name], b[name])))
}

/** Options that are written down again at each call. */
function isData(name: keyof ShieldOptions): boolean {
  return name === 'hubs' || name === 'diskTier'
}

function isEqual(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
