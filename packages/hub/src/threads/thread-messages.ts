import type { Rule } from '@firebreak/core/rules'
import { pastFields } from '../heat/counted-keys.ts'

/** A thread's start options. */
export interface ThreadData {
  readonly shard: number
  readonly shardCount: number
  /** Maximum number of counted keys of a cluster, over all shards. */
  readonly maxKeys: number
  readonly hashSeed: number
}

/** A key by its cluster and its bytes as Latin-1. */
export interface KeyId {
  readonly redisClusterId: string
  readonly id: string
}

/** Messages to a thread, handled in order. */
export type ThreadOrder =
  | {
      readonly kind: 'batch'
      readonly number: number
      /** Shared by all threads; one report after another. */
      readonly block: SharedArrayBuffer
      /** For each report, its start, its end, and its time. */
      readonly reports: Float64Array
      /** The rate above which a key is near whatever its rule. */
      readonly nearRate: number
      /**
       * Keys by cluster that are no longer near, unless the thread has sent a row of theirs after the batch `applied`.
       */
      readonly nearNoMore: ReadonlyMap<string, readonly string[]>
      readonly applied: number
    }
  | { readonly kind: 'near'; readonly keys: readonly KeyId[]; readonly now: number }
  | {
      readonly kind: 'rules'
      readonly rules: readonly Rule[]
      readonly hubCount: number
      /** Whether each entry's slot is needed, for shares of a node. */
      readonly wantsSlots: boolean
    }
  | { readonly kind: 'sweep'; readonly now: number }

/** Accesses by slot of one second; pairs of slot and count. */
export interface SlotSums {
  readonly redisClusterId: string
  readonly at: number
  readonly pairs: Float64Array
}

/** From a thread: the result of a batch or a sweep. */
export interface ThreadAnswer {
  /** The batch; 0 for a sweep. */
  readonly number: number
  /** `rowFields` numbers for each row, in the order of the entries. */
  readonly rows: Float64Array
  /** `slotFields` numbers for each entry, if requested. */
  readonly slots: Float64Array
  readonly slotSums: readonly SlotSums[]
  readonly size: number
  readonly memoryBytes: number
  readonly overflowCount: number
}

/** A row: the report's index in the batch, the section's index, then the numbers of `NearRow`, with its past last. */
export const rowFields: number = 10 + pastFields
/** The report's index, the section's index, the slot, and the count. */
export const slotFields = 4
