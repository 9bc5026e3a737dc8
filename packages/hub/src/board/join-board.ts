import { randomBytes } from 'node:crypto'
import type { DeciderOptions } from '../decide/decider.ts'
import type { ResolvedCoreOptions } from '../hub-options.ts'
import { BoardExchange, type BoardExchangeOptions } from './board-exchange.ts'
import type { HeatBoard } from './heat-board.ts'
import { SharedDecider, type SharedDeciderOptions } from './shared-decider.ts'

/** A hot key that nobody touches any more is looked at so often. */
const recheckMs = 500

export type BoardHooks = Pick<SharedDeciderOptions, 'findTrack' | 'onHot'> &
  Pick<BoardExchangeOptions, 'onSync' | 'onDecided' | 'onTrouble'>

/** What a hub on a board decides with, and what carries it to the board and back. */
export function joinBoard(
  board: HeatBoard,
  deciding: DeciderOptions,
  options: ResolvedCoreOptions,
  hooks: BoardHooks,
): { readonly decider: SharedDecider; readonly exchange: BoardExchange } {
  // Never twice the same: a hub that comes back must not write its empty windows over those of its former self.
  const boardId = `${options.hubId}.${randomBytes(4).toString('hex')}`
  const decider = new SharedDecider({ ...deciding, ...hooks, board, boardId, urge: () => exchange.urge() })
  const { clock, timers, tickMs, entryTtlMs, restartGraceMs } = options
  const exchange: BoardExchange = new BoardExchange({
    ...hooks,
    board,
    decider,
    settings: { hubId: boardId, entryTtlMs, graceMs: restartGraceMs, recheckMs },
    clock,
    timers,
    tickMs,
    totals: (now) => deciding.totals.own(now),
  })
  return { decider, exchange }
}
