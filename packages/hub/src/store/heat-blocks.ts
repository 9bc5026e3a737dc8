/** A block of the heat history as stored; only `history/history-block.ts` knows its contents. */
export interface StoredBlock {
  /** The length of its points. */
  readonly stepMs: number
  /** Start of its first point. */
  readonly at: number
  /** Who wrote it: hubs that share a store each write their own blocks. */
  readonly writer: string
  readonly data: string
}

/** What the store holds for one length of points. */
export interface KeptBlocks {
  readonly stepMs: number
  readonly bytes: number
  /** Start of the oldest. */
  readonly from: number
}

/** Where the heat history is kept. */
export interface HeatBlocks {
  /** The same block written again replaces the former one. */
  saveBlock(block: StoredBlock): Promise<void>
  /** Blocks of all writers that begin in the period, oldest first. */
  blocks(stepMs: number, from: number, to: number): Promise<readonly StoredBlock[]>
  /** Deletes blocks that begin before a time, up to a maximum per call. */
  trimBlocks(stepMs: number, before: number): Promise<void>
  /** In ascending order of the length of points. */
  keptBlocks(): Promise<readonly KeptBlocks[]>
}

/** Maximum number of blocks deleted at once. */
export const maxTrimmedBlocks = 200
