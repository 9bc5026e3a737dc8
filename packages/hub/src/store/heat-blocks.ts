/** A block of the history of heat as a store keeps it; what is in it only `history/history-block.ts` knows. */
export interface StoredBlock {
  /** The length of its points. */
  readonly stepMs: number
  /** Start of its first point. */
  readonly at: number
  /** Who wrote it: hubs that share a store each write blocks of their own. */
  readonly writer: string
  readonly data: string
}

/** What lies in the store of one length of points. */
export interface KeptBlocks {
  readonly stepMs: number
  readonly bytes: number
  /** Start of the oldest. */
  readonly from: number
}

/** Where the history of heat is kept. */
export interface HeatBlocks {
  /** The same block written again takes the place of the former one. */
  saveBlock(block: StoredBlock): Promise<void>
  /** Blocks of all writers that begin in the period, oldest first. */
  blocks(stepMs: number, from: number, to: number): Promise<readonly StoredBlock[]>
  /** Deletes blocks that begin before a time; as many as can be done at once. */
  trimBlocks(stepMs: number, before: number): Promise<void>
  /** By rising length of points. */
  keptBlocks(): Promise<readonly KeptBlocks[]>
}

/** Blocks that are deleted at once. */
export const maxTrimmedBlocks = 200
