/** One operation on a counter, by one clock: what it adds (0: it reads), and what it was told. */
export interface CounterOperation {
  readonly amount: number
  readonly began: number
  /** When its answer came; undefined without one: it may have happened at any time since, or never. */
  readonly ended: number | undefined
  /** The value of the counter after it. */
  readonly value: number | undefined
  /** What the same client had sent before it on the same connection, answered or not. */
  readonly after?: CounterOperation | undefined
}

/**
 * Whether a history of one counter is linearizable (Wing and Gong's search, with Lowe's memory of what was tried): whether
 * each operation can have happened at one moment between its beginning and its end, so that all of them in the order of
 * these moments have the values that they were told. Gives how far the best attempt came where it is not.
 */
export function isLinearizable(history: readonly CounterOperation[], start = 0): true | string {
  const operations = history
    .filter(({ amount, ended }) => ended !== undefined || amount !== 0)
    .toSorted((one, other) => one.began - other.began)
  const indexes = new Map(operations.map((operation, index) => [operation, index]))
  const isDone = new Uint8Array(operations.length)
  const needed = operations.filter(({ ended }) => ended !== undefined).length
  const isRising = operations.every(({ amount }) => amount >= 0)
  const tried = new Set<string>()
  /** Each step: what was chosen, what could be chosen instead, and the value before. */
  const steps: { chosen: number; others: number[]; before: number }[] = []
  let value = start
  let first = 0
  let done = 0
  let best = 0
  let options = candidates()
  for (;;) {
    if (done === needed) return true
    const chosen = options.pop()
    if (chosen === undefined) {
      const step = steps.pop()
      if (step === undefined) return `${best} of ${needed} operations have a place; the next one has none`
      undo(step.chosen, step.before)
      options = step.others
      continue
    }
    steps.push({ chosen, others: options, before: value })
    isDone[chosen] = 1
    value += operations[chosen]!.amount
    if (operations[chosen]!.ended !== undefined) done++
    best = Math.max(best, done)
    while (first < operations.length && isDone[first] === 1) first++
    const state = `${value} ${first} ${isDone.subarray(first, lastDone() + 1).join('')}`
    options = tried.has(state) ? [] : candidates()
    tried.add(state)
  }

  function undo(index: number, before: number): void {
    isDone[index] = 0
    if (operations[index]!.ended !== undefined) done--
    value = before
    first = Math.min(first, index)
  }

  function lastDone(): number {
    return isDone.lastIndexOf(1)
  }

  /** Operations that may come next: begun before any of the others has ended, with a matching value. */
  function candidates(): number[] {
    let earliestEnd = Number.POSITIVE_INFINITY
    for (let index = first; index < operations.length; index++) {
      const { began, ended } = operations[index]!
      if (began > earliestEnd) break
      if (isDone[index] === 0 && ended !== undefined) earliestEnd = Math.min(earliestEnd, ended)
    }
    // If nothing is ever subtracted, no later answer can be below the counter's value.
    let least = Number.POSITIVE_INFINITY
    for (let index = first; isRising && index < operations.length && operations[index]!.began <= earliestEnd; index++) {
      const { ended, value: told } = operations[index]!
      if (isDone[index] === 0 && ended !== undefined) least = Math.min(least, told!)
    }
    const known: number[] = []
    const lost = new Map<number, number>()
    for (let index = first; index < operations.length && operations[index]!.began <= earliestEnd; index++) {
      const operation = operations[index]!
      const next = value + operation.amount
      if (isDone[index] === 1 || next > least || !isInTurn(operation)) continue
      if (operation.ended !== undefined) {
        if (operation.value !== next) continue
        // Operations that change nothing are best placed at once: later they can only be in the way.
        if (operation.amount === 0) return [index]
        known.push(index)
        // Of lost operations that add the same, it does not matter which.
      } else if (!lost.has(operation.amount)) lost.set(operation.amount, index)
    }
    // The last one, an answered operation, is tried first.
    return [...lost.values(), ...known]
  }

  function isInTurn({ after }: CounterOperation): boolean {
    const index = after === undefined ? undefined : indexes.get(after)
    return index === undefined || isDone[index] === 1 || operations[index]!.ended === undefined
  }
}
