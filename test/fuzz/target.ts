/** One parser, or one way through several, that a stranger's bytes can reach. */
export interface FuzzTarget {
  readonly name: string
  /** Valid inputs, made by our own encoders: mutation starts from these. */
  readonly seeds: () => readonly Uint8Array[]
  /** Pieces of the format that a random byte would hardly ever make. */
  readonly words?: readonly string[]
  /** Where the JSON in an input begins; it is also mutated as a tree. @default it is no JSON */
  readonly jsonAt?: (input: Buffer) => number
  /** Inputs between two checks of the coverage. @default 256 */
  readonly batch?: number
  /** Processor time that every input may take, whatever its length. @default 50 */
  readonly freeCpuMs?: number
  /** Processor time that each byte of an input may take. @default 10 */
  readonly cpuMicrosPerByte?: number
  readonly open?: () => Promise<void>
  readonly close?: () => Promise<void>
  /** Throws one of our errors with a code, or nothing; anything else breaks the rules. */
  run(input: Buffer): void | Promise<void>
}

/** A rule of a target is broken: two ways of reading gave different results, or an answer was not one of ours. */
export class LawBroken extends Error {
  override readonly name = 'LawBroken'
}
