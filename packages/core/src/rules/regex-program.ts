import type { CodePointSet } from './code-point-set.ts'
import { RegexError } from './regex-error.ts'
import { parseRegex, type RegexNode } from './regex-parser.ts'

/** One state of the automaton; `next` and `other` are indexes of states. */
export type RegexState =
  | { readonly kind: 'set'; readonly set: CodePointSet; next: number }
  | { readonly kind: 'split'; next: number; other: number }
  | { readonly kind: 'start' | 'end'; next: number }
  | { readonly kind: 'match' }

/** A Thompson automaton: each state either reads one character or moves on without reading. */
export interface RegexProgram {
  readonly states: readonly RegexState[]
  readonly first: number
}

/** An expression may not expand ({n,m} is written out) to more states than this: a key costs states × characters. */
export const maxRegexStates = 500

/** Compiles an expression; throws `RegexError`. */
export function compileRegex(regex: string): RegexProgram {
  const states: RegexState[] = [{ kind: 'match' }]

  const add = (state: RegexState): number => {
    if (states.length >= maxRegexStates) {
      const reason = `it expands to more than ${maxRegexStates} states, and each character of a key costs that many steps`
      throw new RegexError(regex, 0, `${reason}; repeat less ({n,m} counts m times), or use a prefix or a glob`)
    }
    states.push(state)
    return states.length - 1
  }

  // Built from the end to the start: `next` is where a node continues when it is done; the result is where it begins.
  const build = (node: RegexNode, next: number): number => {
    switch (node.kind) {
      case 'set':
        return add({ kind: 'set', set: node.set, next })
      case 'start':
      case 'end':
        return add({ kind: node.kind, next })
      case 'sequence':
        return node.parts.reduceRight((after, part) => build(part, after), next)
      case 'choice':
        return node.options
          .map((option) => build(option, next))
          .reduceRight((other, option) => add({ kind: 'split', next: option, other }))
      case 'repeat':
        return buildRepeat(node.node, node.min, node.max, next)
    }
  }

  const buildRepeat = (node: RegexNode, min: number, max: number, next: number): number => {
    let entry = next
    if (max === Number.POSITIVE_INFINITY) {
      const loop = { kind: 'split' as const, next: 0, other: next }
      entry = add(loop)
      loop.next = build(node, entry)
    } else {
      for (let optional = min; optional < max; optional++) {
        entry = add({ kind: 'split', next: build(node, entry), other: next })
      }
    }
    for (let required = 0; required < min; required++) entry = build(node, entry)
    return entry
  }

  const first = build(parseRegex(regex), 0)
  return { states, first }
}
