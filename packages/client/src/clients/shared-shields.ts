import { emitProcessWarning, Shield, type ShieldOptions, type Warning } from '@firebreak/shield'

/** A client's share in a shield that it has in common with others. */
export interface ShieldUser {
  readonly shield: Shield
  release(): void
}

/** A client's warning listener; the client holds it, and the shield only refers to it. */
export interface WarningListener {
  readonly onWarning: ((warning: Warning) => void) | undefined
}

interface SharedShield {
  readonly options: ShieldOptions
  readonly shield: Shield
  readonly listeners: Set<WeakRef<WarningListener>>
}

const sharedShields: SharedShield[] = []

/** The shield of all clients with these options, created for the first and closed with the last. */
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

/** Calls each listener once, however many clients registered it. */
function tell(listeners: SharedShield['listeners'], warning: Warning): void {
  const told = new Set<(warning: Warning) => void>()
  for (const reference of listeners) {
    const listener = reference.deref()
    if (listener !== undefined) told.add(listener.onWarning ?? emitProcessWarning)
  }
  // The first client is added after its shield exists.
  if (listeners.size === 0) queueMicrotask(() => listeners.size > 0 && tell(listeners, warning))
  for (const onWarning of told) {
    try {
      onWarning(warning)
    } catch {
      // The listener is the application's; the others are still called.
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

/** Options that the application may write out afresh in each call. */
function isData(name: keyof ShieldOptions): boolean {
  return name === 'hubs' || name === 'diskTier'
}

function isEqual(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
