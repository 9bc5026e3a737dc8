import type { Rule } from '@firebreak/core/rules'
import { pastFields } from '../heat/counted-keys.ts'

/** What a thread is started with. */
export interface ThreadData {
  readonly shard: number
  readonly shardCount: number
  /** Keys of a cluster that all shards together count at once. */
  readonly maxKeys: number
  readonly hashSeed: number
}

/** A key by its cluster and its bytes as Latin-1. */
export interface KeyId {
  readonly redisClusterId: string
  readonly id: string
}

/** To a thread. They are handled in order. */
export type ThreadOrder =
  | {
      readonly kind: 'batch'
      readonly number: number
      /** Shared by all threads; reports one after the other. */
      readonly block: SharedArrayBuffer
      /** For each report where it starts, where it ends, and its time. */
      readonly reports: Float64Array
      /** The rate above which a key is near whatever its rule says. */
      readonly nearRate: number
      /** Keys by cluster that are near no more, unless the thread sent a row of theirs after the batch `applied`. */
      readonly nearNoMore: ReadonlyMap<string, readonly string[]>
      readonly applied: number
    }
  | { readonly kind: 'near'; readonly keys: readonly KeyId[]; readonly now: number }
  | {
      readonly kind: 'rules'
      readonly rules: readonly Rule[]
      readonly hubCount: number
      /** Whether each entry's slot is wanted, for shares of a node. */
      readonly wantsSlots: boolean
    }
  | { readonly kind: 'sweep'; readonly now: number }

/** Accesses by slot of one second; pairs of slot and count. */
export interface SlotSums {
  readonly redisClusterId: string
  readonly at: number
  readonly pairs: Float64Array
}

/** From a thread: what came of a batch or of a sweep. */
export interface ThreadAnswer {
  /** The batch; 0 for a sweep. */
  readonly number: number
  /** `rowFields` numbers for each row, in the order of the entries. */
  readonly rows: Float64Array
  /** `slotFields` numbers for each entry, where they are wanted. */
  readonly slots: Float64Array
  readonly slotSums: readonly SlotSums[]
  readonly size: number
  readonly memoryBytes: number
  readonly overflowCount: number
}

/** A row: which report of the batch, which section of it, then the numbers of `NearRow`, its past last. */
export const rowFields: number = 10 + pastFields
/** Which report, which section, the slot, and the count. */
export const slotFields = 4
