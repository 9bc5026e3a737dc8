import { assemble } from './assemble-wasm.ts'

/** The part of WebAssembly's interface used here: it belongs to the runtime, not to the language's library. */
interface Runtime {
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object) => { readonly exports: unknown }
}

interface Loops {
  readonly memory: { readonly buffer: ArrayBuffer }
  /**
   * Computes the hashes of a batch's keys from `from` to `size`, as `KeyHasher.hash` does; `k0` and `k1` are its seed.
   */
  hashAll(from: number, size: number, k0: number, k1: number): void
  /** Brings the buckets of a batch's keys into the processor's cache; the result is meaningless. */
  preload(size: number, mask: number): number
  /**
   * Counts reads of a batch's keys from `from` on. Stops at anything less simple and returns its number: a write, a key
   * without an entry, a key whose count has reached `limit`. Returns `size` if it did not stop.
   */
  addReads(from: number, size: number, limit: number, mask: number): number
}

/**
 * The three loops that count an access, in WebAssembly, and the memory that they work on: one `KeyBatch` and the
 * buckets of one `KeyTally`.
 *
 * In JavaScript each array access is bounds-checked, and four words cannot be compared at once; here, page tables
 * enforce the memory's bounds. It takes three fifths of the time. The memory never grows: V8 would drop an assumption
 * about all arrays in the process, and everything that reads bytes would get slower.
 */
export class TallyKernel {
  readonly buffer: ArrayBuffer
  readonly loops: Loops

  /** Throws if the runtime has no WebAssembly, or no address space left for it. */
  constructor() {
    const { Module, Instance } = (globalThis as unknown as { WebAssembly: Runtime }).WebAssembly
    module ??= new Module(assemble(text))
    this.loops = new Instance(module).exports as Loops
    this.buffer = this.loops.memory.buffer
  }
}

let module: object | undefined

/** Bytes available to a batch, more than arrives in one piece. They are at the start of the memory. */
export const roomBytes = 160 * 1024
/** Maximum number of keys in a batch. */
export const batchKeys = 4352
/** Maximum number of entries of a tally. */
export const mostEntries = 131_072
/** Entries in a bucket, which is 64 bytes: what the processor fetches from memory at once. */
export const bucketEntries = 8
/** Number of buckets, from its own onwards, that a key may be in. */
export const windowBuckets = 32
/** Keys are read four bytes at a time, so the last read may run past their end. */
const slackBytes = 8
const wordBytes = 4
const pageBytes = 65_536

/** The layout of the memory. */
export const placesAt = roomBytes + slackBytes
export const writtenAt = placesAt + batchKeys * wordBytes
export const hashesAt = writtenAt + batchKeys * wordBytes
export const checksAt = hashesAt + batchKeys * wordBytes
export const bucketsAt = Math.ceil((checksAt + batchKeys * wordBytes) / pageBytes) * pageBytes
const pages = bucketsAt / pageBytes + (mostEntries * 2 * wordBytes) / pageBytes

/** A place of `places` is a key's start and, from this bit up, its length. */
export const lengthBit = 18
export const startMask = 2 ** lengthBit - 1
/** The lowest bits of an entry's word: its count. */
export const maxCount = 2 ** 20 - 1

/** `$name` becomes what `value` says of it. */
const set = (name: string, value: string) => `(local.set $${name} ${value})`
const add = (name: string, other: string) => set(name, `(i32.add (local.get $${name}) (local.get $${other}))`)
const turn = (name: string, bits: number) => set(name, `(i32.rotl (local.get $${name}) (i32.const ${bits}))`)
const mix = (name: string, value: string) => set(name, `(i32.xor (local.get $${name}) ${value})`)
const turnAndMix = (name: string, bits: number, other: string) =>
  set(name, `(i32.xor (i32.rotl (local.get $${name}) (i32.const ${bits})) (local.get $${other}))`)

/** One round of HalfSipHash; see `hashBytes`. */
const round = [
  add('v0', 'v1'),
  turnAndMix('v1', 5, 'v0'),
  turn('v0', 16),
  add('v2', 'v3'),
  turnAndMix('v3', 8, 'v2'),
  add('v0', 'v3'),
  turnAndMix('v3', 7, 'v0'),
  add('v2', 'v1'),
  turnAndMix('v1', 13, 'v2'),
  turn('v2', 16),
].join('\n')
/** The round that absorbs `$word`. */
const takeWord = [mix('v3', '(local.get $word)'), round, mix('v0', '(local.get $word)')].join('\n')
const lastRounds = [round, round, round].join('\n')

// $at, $stop: the number of a key, times four.
const text = `
(module (memory (export "memory") ${pages})
  (func (export "hashAll") (param $from i32) (param $size i32) (param $k0 i32) (param $k1 i32)
    (local $at i32) (local $stop i32) (local $key i32) (local $left i32) (local $word i32) (local $length i32)
    (local $v0 i32) (local $v1 i32) (local $v2 i32) (local $v3 i32)
    (local.set $at (i32.shl (local.get $from) (i32.const 2)))
    (local.set $stop (i32.shl (local.get $size) (i32.const 2)))
    (block $done (loop $next
      (br_if $done (i32.ge_u (local.get $at) (local.get $stop)))
      (local.set $key (i32.load offset=${placesAt} (local.get $at)))
      (local.set $left (i32.shr_u (local.get $key) (i32.const ${lengthBit})))
      (local.set $key (i32.and (local.get $key) (i32.const ${startMask})))
      (local.set $v0 (local.get $k0))
      (local.set $v1 (i32.xor (local.get $k1) (i32.const 0xee)))
      (local.set $v2 (i32.xor (local.get $k0) (i32.const 0x6c796765)))
      (local.set $v3 (i32.xor (local.get $k1) (i32.const 0x74656462)))
      (local.set $length (i32.shl (local.get $left) (i32.const 24)))
      (block $tail (loop $four
        (br_if $tail (i32.lt_s (local.get $left) (i32.const 4)))
        (local.set $word (i32.load (local.get $key)))
        ${takeWord}
        (local.set $key (i32.add (local.get $key) (i32.const 4)))
        (local.set $left (i32.sub (local.get $left) (i32.const 4)))
        (br $four)))
      ;; Up to three bytes, without those beyond the key's end, and the length above them.
      (local.set $word (i32.or (local.get $length) (i32.and (i32.load (local.get $key))
        (i32.sub (i32.shl (i32.const 1) (i32.shl (local.get $left) (i32.const 3))) (i32.const 1)))))
      ${takeWord}
      ${mix('v2', '(i32.const 0xee)')}
      ${lastRounds}
      (i32.store offset=${hashesAt} (local.get $at) (i32.xor (local.get $v1) (local.get $v3)))
      ${mix('v1', '(i32.const 0xdd)')}
      ${lastRounds}
      (i32.store offset=${checksAt} (local.get $at) (i32.xor (local.get $v1) (local.get $v3)))
      (local.set $at (i32.add (local.get $at) (i32.const 4)))
      (br $next))))

  ;; Nothing else is done in this loop, so that it waits for all buckets at once: with work between, it waits for each.
  (func (export "preload") (param $size i32) (param $mask i32) (result i32)
    (local $at i32) (local $stop i32) (local $all i32)
    (local.set $stop (i32.shl (local.get $size) (i32.const 2)))
    (block $done (loop $next
      (br_if $done (i32.ge_u (local.get $at) (local.get $stop)))
      (local.set $all (i32.xor (local.get $all) (i32.load offset=${bucketsAt}
        (i32.shl (i32.and (i32.load offset=${hashesAt} (local.get $at)) (local.get $mask)) (i32.const 6)))))
      (local.set $at (i32.add (local.get $at) (i32.const 4)))
      (br $next)))
    (local.get $all))

  ;; $nth, $stop: the number of a key, times four. $at: a bucket, times 64.
  (func (export "addReads") (param $from i32) (param $size i32) (param $limit i32) (param $mask i32) (result i32)
    (local $nth i32) (local $stop i32) (local $at i32) (local $hash i32) (local $found i32) (local $buckets i32)
    (local $word i32) (local $check v128)
    (local.set $nth (i32.shl (local.get $from) (i32.const 2)))
    (local.set $stop (i32.shl (local.get $size) (i32.const 2)))
    (local.set $mask (i32.shl (local.get $mask) (i32.const 6)))
    (block $done (loop $next
      (br_if $done (i32.ge_u (local.get $nth) (local.get $stop)))
      (br_if $done (i32.ge_s (i32.load offset=${writtenAt} (local.get $nth)) (i32.const 0)))
      (local.set $hash (i32.load offset=${hashesAt} (local.get $nth)))
      (local.set $check (i32x4.splat (i32.load offset=${checksAt} (local.get $nth))))
      (local.set $at (i32.and (i32.shl (local.get $hash) (i32.const 6)) (local.get $mask)))
      (local.set $buckets (i32.const ${windowBuckets}))
      (block $known (loop $seek
        ;; A bit for each of the eight checks.
        (local.set $found (i32.or
          (i32x4.bitmask (i32x4.eq (v128.load offset=${bucketsAt} (local.get $at)) (local.get $check)))
          (i32.shl
            (i32x4.bitmask (i32x4.eq (v128.load offset=${bucketsAt + 16} (local.get $at)) (local.get $check)))
            (i32.const 4))))
        (br_if $known (local.get $found))
        ;; Where the last entry of a bucket is free, the key is in no other.
        (br_if $done (i32.eqz (i32.load offset=${bucketsAt + 60} (local.get $at))))
        (local.set $at (i32.and (i32.add (local.get $at) (i32.const 64)) (local.get $mask)))
        (local.set $buckets (i32.sub (local.get $buckets) (i32.const 1)))
        (br_if $seek (local.get $buckets))
        (br $done)))
      (local.set $at (i32.add (local.get $at) (i32.shl (i32.ctz (local.get $found)) (i32.const 2))))
      (local.set $word (i32.load offset=${bucketsAt + 32} (local.get $at)))
      ;; Without the bits of the hash, the count is left; of another key's entry, a higher bit too.
      (br_if $done (i32.ge_u
        (i32.xor (local.get $word)
          (i32.and (i32.or (local.get $hash) (i32.const 0x80000000)) (i32.const ${~maxCount})))
        (local.get $limit)))
      (i32.store offset=${bucketsAt + 32} (local.get $at) (i32.add (local.get $word) (i32.const 1)))
      (local.set $nth (i32.add (local.get $nth) (i32.const 4)))
      (br $next)))
    (i32.shr_u (local.get $nth) (i32.const 2))))`
