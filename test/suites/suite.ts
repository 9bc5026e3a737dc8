/** How one test of a suite ended. */
export type Outcome = 'passed' | 'failed' | 'skipped'

export interface TestEnd {
  readonly outcome: Outcome
  /** The error that it failed with. */
  readonly message?: string | undefined
}

/** The tests of one run by their names. */
export type RunResults = ReadonlyMap<string, TestEnd>

/** The ways in which a suite is run: as it is, with its clients protected, and with a proxy before its server. */
export const ways = ['plain', 'cache', 'copies', 'limits', 'proxy'] as const
export type Way = (typeof ways)[number]

/** What a suite is started with. */
export interface SuitePlace {
  readonly folder: string
  readonly port: number
  /** Where results are written, for what does not print them. */
  readonly results: string
  readonly way: Way
}

export interface SuiteCommand {
  readonly program: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

/** A library's own tests: how they are run, and where its clients come from. */
export interface Suite {
  /** The ways that mean something for it; a library of another language meets the proxy only. */
  readonly ways: readonly Way[]
  /** Its own source files, as opposed to its tests: what tests take from these is protected. */
  readonly own?: (folder: string) => string
  /** Packages whose clients are protected wherever they are made. */
  readonly packages?: readonly string[]
  /** The suite starts its servers itself, with `docker`. */
  readonly startsServers?: boolean
  /** The only port that the suite can use. */
  readonly port?: number
  /** Arguments for a run in which some of its tests would end the whole run; tests left out count as not run. */
  readonly leaveOut?: Partial<Record<Way, { readonly words: readonly string[]; readonly reason: string }>>
  command(place: SuitePlace): SuiteCommand
  /** Reads the file of results, or what was printed. */
  read(results: string, output: string): RunResults
  /** Whether the suite itself reports that it reached its last test. */
  hasEnded(results: string, output: string): boolean
}
