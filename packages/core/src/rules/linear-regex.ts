import type { CodePointSet } from './code-point-set.ts'
import { compileRegex, type RegexProgram } from './regex-program.ts'

/**
 * A regular expression whose cost is linear in the text, whatever the expression: a user's rule can never block a
 * process.
 *
 * Backtracking engines (V8's too) try one path after another, and `(a+)+b` on forty `a`s takes them years. Here all
 * paths are followed at once: a set of automaton states moves from character to character. Few distinct sets come up,
 * so each becomes one state of a deterministic automaton, created when first reached and remembered (a lazy DFA, as in
 * RE2 and grep):
 *
 * - characters are grouped into classes that no set in the expression distinguishes; a DFA state has one next state per
 *   class;
 * - the search is unanchored: a match may begin anywhere, so the first state joins the set at every character;
 * - `^` is only passed while building the very first set, `$` only at the end of the text;
 * - at most `maxDfaStates` are remembered; beyond that all are forgotten and the walk continues. A pattern designed to
 *   defeat the cache costs states × characters, still linear in the text.
 *
 * The cost is bounded by construction: an expression has at most `maxRegexStates` states, and a character costs at most
 * 8 steps for each of them (one to read, and two walks along edges that read nothing, of which a state has at most
 * two).
 *
 * The price: no captures, no backreferences, no look-around; only whether it matches.
 */
const maxDfaStates = 512

interface DfaState {
  /** Automaton states, sorted; all of them read a character, except `end`. */
  readonly members: readonly number[]
  readonly isMatch: boolean
  /** True if the text may end here. */
  readonly isMatchAtEnd: boolean
  /** By class of character. */
  readonly next: (DfaState | undefined)[]
}

/** Compiles an expression to a predicate on texts; throws `RegexError`. */
export function compileLinearRegex(regex: string): (text: string) => boolean {
  return new LinearRegex(regex).test
}

/** A compiled expression, with a count of its cost. */
export class LinearRegex {
  readonly #program: RegexProgram
  readonly #boundaries: Uint32Array
  readonly #asciiClasses: Uint16Array
  /** For each automaton state that reads: which classes it accepts. */
  readonly #accepts: readonly (Uint8Array | undefined)[]
  readonly #cache = new Map<string, DfaState>()
  readonly #visited: Uint32Array
  #visit = 0
  #steps = 0
  #start: DfaState

  /** Throws `RegexError`. */
  constructor(regex: string) {
    const program = compileRegex(regex)
    this.#program = program
    this.#boundaries = classBoundaries(program)
    this.#asciiClasses = Uint16Array.from({ length: 128 }, (_, code) => classOf(this.#boundaries, code))
    // A repeated set is the same object, so its classes are computed once.
    const known = new Map<CodePointSet, Uint8Array>()
    this.#accepts = program.states.map((state) => {
      if (state.kind !== 'set') return undefined
      let accepts = known.get(state.set)
      if (accepts === undefined) {
        accepts = Uint8Array.from(this.#boundaries, (from) =>
          Number(state.set.some(([low, high]) => from >= low && from <= high)),
        )
        known.set(state.set, accepts)
      }
      return accepts
    })
    this.#visited = new Uint32Array(program.states.length)
    this.#start = this.#makeState([program.first], true)
  }

  get stateCount(): number {
    return this.#program.states.length
  }

  /** States visited so far; a character whose next set is remembered costs none. */
  get steps(): number {
    return this.#steps
  }

  readonly test = (text: string): boolean => {
    let state = this.#start
    for (let at = 0; at < text.length; at++) {
      if (state.isMatch) return true
      let code = text.charCodeAt(at)
      let klass: number
      if (code < 128) {
        klass = this.#asciiClasses[code]!
      } else {
        code = text.codePointAt(at)!
        if (code > 0xffff) at++
        klass = classOf(this.#boundaries, code)
      }
      state = state.next[klass] ?? this.#step(state, klass)
    }
    return state.isMatch || state.isMatchAtEnd
  }

  #step(state: DfaState, klass: number): DfaState {
    const { states, first } = this.#program
    const reached: number[] = [first]
    this.#steps += state.members.length
    for (const member of state.members) {
      const current = states[member]!
      if (current.kind === 'set' && this.#accepts[member]![klass] === 1) reached.push(current.next)
    }
    if (this.#cache.size >= maxDfaStates) {
      // Forgotten, including the links: only the current walk may still hold an old state.
      this.#cache.clear()
      this.#start = this.#makeState([first], true)
    }
    const next = this.#makeState(reached, false)
    state.next[klass] = next
    return next
  }

  #makeState(seeds: readonly number[], isAtStart: boolean): DfaState {
    const members = this.#closure(seeds, isAtStart, false)
    const name = `${isAtStart ? '^' : ''}${members.join()}`
    const known = this.#cache.get(name)
    if (known !== undefined) return known
    const made: DfaState = {
      members,
      isMatch: members.includes(0),
      isMatchAtEnd: this.#closure(members, isAtStart, true).includes(0),
      next: [],
    }
    this.#cache.set(name, made)
    return made
  }

  /** All states that can be reached without reading, sorted. State 0 is the match. */
  #closure(seeds: readonly number[], isAtStart: boolean, isAtEnd: boolean): number[] {
    const { states } = this.#program
    const visit = ++this.#visit
    const members: number[] = []
    const open = [...seeds]
    for (let index = open.pop(); index !== undefined; index = open.pop()) {
      this.#steps++
      if (this.#visited[index] === visit) continue
      this.#visited[index] = visit
      const state = states[index]!
      if (state.kind === 'split') open.push(state.next, state.other)
      else if (state.kind === 'start' && isAtStart) open.push(state.next)
      else if (state.kind === 'end' && isAtEnd) open.push(state.next)
      else if (state.kind !== 'start') members.push(index)
    }
    return members.sort((a, b) => a - b)
  }
}

/** Where one class of characters ends and the next begins; the first is 0. */
function classBoundaries({ states }: RegexProgram): Uint32Array {
  const starts = new Set([0])
  for (const state of states) {
    if (state.kind !== 'set') continue
    for (const [from, to] of state.set) {
      starts.add(from)
      starts.add(to + 1)
    }
  }
  return Uint32Array.from([...starts].sort((a, b) => a - b))
}

function classOf(boundaries: Uint32Array, code: number): number {
  let low = 0
  let high = boundaries.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (boundaries[middle]! <= code) low = middle
    else high = middle - 1
  }
  return low
}
