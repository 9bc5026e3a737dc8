import { InvalidOptionError } from '../errors/firebreak-error.ts'

/**
 * Where a key stands between cold and hot.
 *
 *              heat ≥ warm            heat ≥ enter              heat < exit
 *       cold ─────────────► warming ──────────────► hot(level) ─────────────► cooling(level)
 *        ▲                     │                      ▲  ▲                      │    │
 *        └─────────────────────┘                      │  └──── heat ≥ exit ─────┘    │ heat < exit and
 *                heat < warm                          │                              │ the hold is over
 *        ▲                                            └── a lower level, where the ──┤
 *        └────────────────────────────────────────────    heat still keeps one      ─┘
 *
 * A key is *handled* while it is hot or cooling. Enter and exit levels differ so that a key near the threshold does not
 * flap; the hold says how long it stays handled after its heat was last at its enter level, so a key that keeps
 * reaching it is extended, never begun anew. A higher level is taken at once, also out of cooling.
 */
export type HeatState =
  | { readonly phase: 'cold' }
  | { readonly phase: 'warming'; readonly sinceMs: number }
  | HandledState

/** A hot or cooling key; `level` counts from 0. */
export interface HandledState {
  readonly phase: 'hot' | 'cooling'
  readonly level: number
  /** When it became hot, whatever its level since. */
  readonly sinceMs: number
  /** It is handled at least until then. */
  readonly heldUntilMs: number
}

export type HeatPhase = HeatState['phase']

/** When a key changes its state. */
export interface HeatThresholds {
  /** Each level of heat, by rising `enter`; `exit` is at most `enter`. */
  readonly levels: readonly { readonly enter: number; readonly exit: number }[]
  /** From this heat on a key is warming. @default half of the lowest enter level */
  readonly warm?: number
  /** How long a key stays handled after its heat was last at its enter level. */
  readonly minHoldMs: number
}

export const coldState: HeatState = { phase: 'cold' }

/** The state after `state` at this heat and time; the same object where nothing changes. */
export function nextHeatState(state: HeatState, heat: number, thresholds: HeatThresholds, nowMs: number): HeatState {
  const { levels, minHoldMs } = thresholds
  const entered = levelEntered(levels, heat)
  const heldUntilMs = nowMs + minHoldMs
  if (state.phase === 'cold' || state.phase === 'warming') {
    if (entered >= 0) return { phase: 'hot', level: entered, sinceMs: nowMs, heldUntilMs }
    const warm = thresholds.warm ?? (levels[0]?.enter ?? Number.POSITIVE_INFINITY) / 2
    if (heat < warm) return coldState
    return state.phase === 'warming' ? state : { phase: 'warming', sinceMs: nowMs }
  }
  if (entered >= state.level) {
    const isSame = state.phase === 'hot' && entered === state.level && state.heldUntilMs >= heldUntilMs
    return isSame ? state : { ...state, phase: 'hot', level: entered, heldUntilMs }
  }
  // A rule that was changed may have fewer levels than the key had.
  const exit = levels[Math.min(state.level, levels.length - 1)]?.exit ?? Number.POSITIVE_INFINITY
  if (heat >= exit) return state.phase === 'hot' ? state : { ...state, phase: 'hot' }
  if (nowMs < state.heldUntilMs) return state.phase === 'cooling' ? state : { ...state, phase: 'cooling' }
  const kept = levelKept(levels, heat)
  if (kept < 0) return coldState
  return { ...state, phase: 'hot', level: Math.min(kept, state.level), heldUntilMs }
}

/** True while a strategy applies to the key. */
export function isHandled(state: HeatState): state is HandledState {
  return state.phase === 'hot' || state.phase === 'cooling'
}

/** Throws where levels do not rise, or an exit level is above its enter level. */
export function checkHeatThresholds(thresholds: HeatThresholds): void {
  let before = 0
  for (const { enter, exit } of thresholds.levels) {
    if (!(enter > before)) throw new InvalidOptionError('enter', enter, `above ${before}, the level before`)
    if (!(exit >= 0 && exit <= enter)) throw new InvalidOptionError('exit', exit, `from 0 to ${enter}, its enter level`)
    before = enter
  }
  if (!(thresholds.minHoldMs >= 0)) throw new InvalidOptionError('minHoldMs', thresholds.minHoldMs, 'at least 0')
}

/** The highest level whose enter heat is reached, or -1. */
function levelEntered(levels: HeatThresholds['levels'], heat: number): number {
  let level = levels.length - 1
  while (level >= 0 && heat < levels[level]!.enter) level--
  return level
}

/** The highest level that the heat keeps, or -1. */
function levelKept(levels: HeatThresholds['levels'], heat: number): number {
  let level = levels.length - 1
  while (level >= 0 && heat < levels[level]!.exit) level--
  return level
}
