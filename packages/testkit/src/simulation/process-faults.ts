import type { FaultKinds } from './fault-schedule.ts'
import type { SimulatedProcess } from './simulated-process.ts'

/** A process as the faults meet it: the life that it leads now, and how to begin the next. */
export interface FaultyProcess {
  readonly name: string
  current(): SimulatedProcess
  /** Begins the next life; without it a killed process stays dead. */
  restart?(): void
}

/**
 * Kinds of faults on processes, by name: `freeze`, `kill` (with `forMs` it is started again), `clockStep` (its wall clock
 * goes `amount` milliseconds forward) and `clockDrift` (its wall clock gains `amount` milliseconds a second).
 */
export function processFaults(processes: readonly FaultyProcess[]): FaultKinds {
  const each =
    (act: (process: FaultyProcess, amount: number | undefined) => (() => void) | undefined) =>
    ({ target, amount }: { readonly target: string; readonly amount?: number }) => {
      const met = processes.filter(({ name }) => target === '*' || target === name)
      const undos = met.map((process) => act(process, amount)).filter((undo) => undo !== undefined)
      return undos.length === 0 ? undefined : () => undos.forEach((undo) => void undo())
    }
  return {
    freeze: each((process) => {
      const frozen = process.current()
      frozen.freeze()
      return () => frozen.thaw()
    }),
    kill: each((process) => {
      process.current().kill()
      return () => {
        if (!process.current().isAlive) process.restart?.()
      }
    }),
    clockStep: each((process, amount = 1000) => {
      process.current().stepWallClock(amount)
      return undefined
    }),
    clockDrift: each((process, amount = 1) => {
      process.current().driftWallClock(amount)
      return () => process.current().driftWallClock(0)
    }),
  }
}
