import { Dict } from '../dict/dict.ts'
import { keySlotOfBytes } from '../slots/key-slot.ts'
import { RuleSlices, type WindowRules, windowSlices } from './window-rules.ts'

const sliceWord = 1
const totalWord = 2
const ringWord = 3
const ruleShift = 14
const ruleMask = 0x1fff
const slotMask = 0x3fff
const generationShift = 27
const generationMask = 0xf
const markBit = 1 << 31

/**
 * A sliding window of heat for every entry of a progressive dict: a ring of ten slices, whose length follows from the
 * key's rule.
 *
 * An entry is one cache line:
 *
 *     word   0–2            3      4       5       6 … 15
 *            dict's own     meta   slice   total   ring
 *
 *     meta   31 marked | 30–27 generation of rules | 26–14 rule | 13–0 slot
 *
 * `slice` is the slice of the last report and `total` the sum of the ring. **Rotation is lazy**: time only passes for
 * an entry when it is touched or read, by clearing the slices in between; nothing is swept, however many keys there
 * are. Counts are 32-bit floats: exact up to 16.7 million per slice, and finer than any threshold beyond. The sum
 * covers 90 to 100 % of the window, since its newest slice is still filling.
 *
 * The rule is matched once per key and kept in its entry. When the rules change, so does their *generation*, and an
 * entry with an old one is matched again when it is next touched. Generation numbers repeat after sixteen changes, so
 * the owner must have touched every entry by then (`canChangeRules`, `passDone`).
 */
export class HeatRings {
  readonly dict: Dict
  #rules: RuleSlices
  /** The rules by generation, to know which window an old entry was counted with. */
  readonly #ruleSets: RuleSlices[] = []
  #generation = 0
  /** Number of generations, including the current one, that entries may still have. */
  #generationsInUse = 1
  /** Rule changes since the owner's pass over all entries began. */
  #changesInPass = 0
  #elapsedMs = 0

  constructor(rules: WindowRules, maxBytes: number, hashSeed: number) {
    this.#rules = new RuleSlices(rules)
    this.#rules.moveTo(0)
    this.#ruleSets[0] = this.#rules
    this.dict = new Dict({ payloadWords: ringWord + windowSlices, maxBytes, hashSeed })
  }

  /** Moves the time to this many milliseconds after the start. */
  moveTo(elapsedMs: number): void {
    this.#elapsedMs = elapsedMs
    this.#rules.moveTo(elapsedMs)
  }

  /** Initialises a new entry: its rule, its slot, the current slice. */
  begin(index: number, bytes: Uint8Array, start: number, end: number): void {
    const words = this.dict.wordsOf(index)
    const at = this.dict.payloadAt(index)
    const rule = this.#rules.rules.match(bytes, start, end)
    words[at] = (this.#generation << generationShift) | (rule << ruleShift) | keySlotOfBytes(bytes, start, end)
    words[at + sliceWord] = this.#rules.slice[rule]!
  }

  /** Adds to an entry and returns its heat. */
  add(index: number, count: number): number {
    const { dict } = this
    const words = dict.wordsOf(index)
    const at = dict.payloadAt(index)
    if (((words[at]! >>> generationShift) & generationMask) !== this.#generation) this.#rematch(index)
    const rule = (words[at]! >>> ruleShift) & ruleMask
    const rules = this.#rules
    const floats = dict.floatsOf(index)
    const slice = rules.slice[rule]!
    if (words[at + sliceWord] !== slice) rotate(words, floats, at, slice)
    floats[at + ringWord + rules.place[rule]!]! += count
    const heat = floats[at + totalWord]! + count
    floats[at + totalWord] = heat
    return heat
  }

  /** An entry's current heat in its window. */
  heatOf(index: number): number {
    const { dict } = this
    const words = dict.wordsOf(index)
    const at = dict.payloadAt(index)
    if (((words[at]! >>> generationShift) & generationMask) !== this.#generation) this.#rematch(index)
    const floats = dict.floatsOf(index)
    const slice = this.#rules.slice[(words[at]! >>> ruleShift) & ruleMask]!
    if (words[at + sliceWord] !== slice) rotate(words, floats, at, slice)
    return floats[at + totalWord]!
  }

  /** An entry's slices, newest first, followed by how long ago the newest one began. */
  slicesOf(index: number, into: Float64Array): void {
    this.heatOf(index)
    const { dict } = this
    const rule = this.ruleOf(index)
    const ring = dict.payloadAt(index) + ringWord
    const floats = dict.floatsOf(index)
    const slice = this.#rules.slice[rule]!
    for (let age = 0; age < windowSlices; age++) {
      into[age] = floats[ring + ((slice - age + windowSlices) % windowSlices)]!
    }
    into[windowSlices] = this.#elapsedMs - slice * this.#rules.sliceMs[rule]!
  }

  /** The index of the entry's rule. */
  ruleOf(index: number): number {
    return (this.#metaOf(index) >>> ruleShift) & ruleMask
  }

  slotOf(index: number): number {
    return this.#metaOf(index) & slotMask
  }

  /** Whether the owner has marked the entry. */
  isMarked(index: number): boolean {
    return this.#metaOf(index) < 0
  }

  setMark(index: number, isMarked: boolean): void {
    const words = this.dict.wordsOf(index)
    const at = this.dict.payloadAt(index)
    words[at] = isMarked ? words[at]! | markBit : words[at]! & ~markBit
  }

  /** False if one more rule change would give two generations the same number: finish a pass first. */
  get canChangeRules(): boolean {
    return this.#generationsInUse < generationMask
  }

  setRules(rules: WindowRules): void {
    const slices = new RuleSlices(rules)
    this.#generation = (this.#generation + 1) & generationMask
    this.#generationsInUse++
    this.#changesInPass++
    slices.moveTo(this.#elapsedMs)
    this.#rules = slices
    this.#ruleSets[this.#generation] = slices
  }

  /** Called by the owner when it has visited every entry since the last call. */
  passDone(): void {
    this.#generationsInUse = this.#changesInPass + 1
    this.#changesInPass = 0
  }

  #metaOf(index: number): number {
    return this.dict.wordsOf(index)[this.dict.payloadAt(index)]!
  }

  /** Finds the rule of an entry that was counted under older rules, and carries its heat over. */
  #rematch(index: number): void {
    const { dict } = this
    const words = dict.wordsOf(index)
    const at = dict.payloadAt(index)
    const floats = dict.floatsOf(index)
    const meta = words[at]!
    const before = this.#ruleSets[(meta >>> generationShift) & generationMask]!
    const ruleBefore = (meta >>> ruleShift) & ruleMask
    const key = dict.keyAt(index)
    const rule = this.#rules.rules.match(key, 0, key.length)
    words[at] = (meta & (markBit | slotMask)) | (this.#generation << generationShift) | (rule << ruleShift)
    const sliceMs = this.#rules.sliceMs[rule]!
    const sliceMsBefore = before.sliceMs[ruleBefore]!
    if (sliceMs === sliceMsBefore) return
    before.moveTo(this.#elapsedMs)
    rotate(words, floats, at, before.slice[ruleBefore]!)
    // The count of the old window is a lower bound for a longer one; for a shorter one, take a share of it.
    const carried = floats[at + totalWord]! * Math.min(1, sliceMs / sliceMsBefore)
    floats.fill(0, at + totalWord, at + ringWord + windowSlices)
    words[at + sliceWord] = this.#rules.slice[rule]!
    floats[at + ringWord + this.#rules.place[rule]!] = carried
    floats[at + totalWord] = carried
  }
}

function rotate(words: Int32Array, floats: Float32Array, at: number, slice: number): void {
  const ring = at + ringWord
  const last = words[at + sliceWord]!
  words[at + sliceWord] = slice
  if (slice - last >= windowSlices) {
    floats.fill(0, at + totalWord, ring + windowSlices)
    return
  }
  for (let passed = last + 1; passed <= slice; passed++) floats[ring + (passed % windowSlices)] = 0
  // Summed again rather than subtracted: floats would accumulate rounding errors.
  let total = 0
  for (let place = ring; place < ring + windowSlices; place++) total += floats[place]!
  floats[at + totalWord] = total
}
