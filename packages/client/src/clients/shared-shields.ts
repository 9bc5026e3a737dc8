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
  if (sharedShields.some((other) => differsInFunctionsOnly(other.options, options))) {
    shield.trouble.note(
      'options-unshared',
      'a client was protected with its own redactKey function, so it also has its own hub link and table; define the function once, outside the call',
    )
  }
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

/**
 * True if two values hold the same data, even in separate objects; anything that is not plain data is compared by
 * identity.
 */
function isSame(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  if (!isData(a) || !isData(b) || Array.isArray(a) !== Array.isArray(b)) return false
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...names].every((name) => isSame(a[name], b[name]))
}

/** An instance of a class may hold private state. */
function isData(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === Array.prototype || prototype === null
}

/** True if the options differ only in functions: the shields would be shared if those had been defined once. */
function differsInFunctionsOnly(a: ShieldOptions, b: ShieldOptions): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]) as Set<keyof ShieldOptions>
  const others = [...names].filter((name) => !isSame(a[name], b[name]))
  return others.every((name) => typeof a[name] === 'function' && typeof b[name] === 'function')
}
