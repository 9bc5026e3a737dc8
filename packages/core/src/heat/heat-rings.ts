import { Dict } from '../dict/dict.ts'
import { keySlotOfBytes } from '../slots/key-slot.ts'
import { CompiledRules, type WindowRules } from './window-rules.ts'

/**
 * A sliding window of heat for every entry of a progressive dict: a ring of slices, as long as the key's rule says.
 *
 * An entry with ten slices is one cache line:
 *
 *     word   0–2            3      4       5       6 … 15
 *            dict's own     meta   slice   total   ring
 *
 *     meta   31 marked | 30–27 generation of rules | 26–14 rule | 13–0 slot
 *
 * `slice` is the slice of the last report and `total` the sum of the ring. **Rotation is lazy**: time passes for an
 * entry only when it is touched or looked at, by clearing the slices between; no sweep, however many keys there are.
 * Heat is a 32-bit float: exact for counts to 16.7 million a slice, and finer than any threshold beyond; it may be a
 * weighted sum, so a rule may count reads, writes or bytes.
 *
 * The rule is matched once per key and kept in its entry. When the rules change their *generation* does, and an entry
 * with an old one is matched again when it is next touched. A generation's number comes back after sixteen changes, so
 * the owner must have touched every entry by then (`canChangeRules`, `passDone`).
 */
const sliceWord = 1
const totalWord = 2
const ringWord = 3
const ruleShift = 14
const ruleMask = 0x1fff
const slotMask = 0x3fff
const generationShift = 27
const generationMask = 0xf
const markBit = 1 << 31

/** What an entry's rule has become, for whoever keeps more about the key. */
export type RematchListener = (index: number) => void

/** Rings of slices on a dict, with each key's rule and slot. */
export class HeatRings {
  readonly dict: Dict
  readonly slices: number
  /** Called where a key's window or measure has become another one. */
  onRestart: RematchListener = () => {}
  #rules: CompiledRules
  /** The rules by generation, to know what an old entry was counted by. */
  readonly #ruleSets: CompiledRules[] = []
  #generation = 0
  /** Generations, the current one included, that entries may still have. */
  #generationsInUse = 1
  /** Changes of rules since the owner's pass over all entries began. */
  #changesInPass = 0
  #elapsedMs = 0
  /** The slice of the entry that was added to last. */
  lastSlice = 0

  constructor(rules: WindowRules, slices: number, maxBytes: number, hashSeed: number) {
    this.slices = slices
    this.#rules = new CompiledRules(rules, slices)
    this.#rules.moveTo(0)
    this.#ruleSets[0] = this.#rules
    this.dict = new Dict({ payloadWords: ringWord + slices, maxBytes, hashSeed })
  }

  get rules(): CompiledRules {
    return this.#rules
  }

  /** Moves the time to this many milliseconds after the beginning. */
  moveTo(elapsedMs: number): void {
    this.#elapsedMs = elapsedMs
    this.#rules.moveTo(elapsedMs)
  }

  /** Fits out a new entry: its rule, its slot, the current slice. */
  begin(index: number, bytes: Uint8Array, start: number, end: number): void {
    const words = this.dict.wordsOf(index)
    const at = this.dict.payloadAt(index)
    const rule = this.#rules.source.match(bytes, start, end)
    words[at] = (this.#generation << generationShift) | (rule << ruleShift) | keySlotOfBytes(bytes, start, end)
    words[at + sliceWord] = this.#rules.slice[rule]!
  }

  /** Adds to an entry and gives its heat; its slice is then `lastSlice`. */
  add(index: number, count: number, writes: number, byteCount: number): number {
    const { dict } = this
    const words = dict.wordsOf(index)
    const at = dict.payloadAt(index)
    if (((words[at]! >>> generationShift) & generationMask) !== this.#generation) this.#rematch(index)
    const rule = (words[at]! >>> ruleShift) & ruleMask
    const rules = this.#rules
    const floats = dict.floatsOf(index)
    const slice = rules.slice[rule]!
    if (words[at + sliceWord] !== slice) this.#rotate(words, floats, at, slice)
    const amount = count * rules.perAccess[rule]! + writes * rules.perWrite[rule]! + byteCount * rules.perByte[rule]!
    floats[at + ringWord + rules.place[rule]!]! += amount
    const heat = floats[at + totalWord]! + amount
    floats[at + totalWord] = heat
    this.lastSlice = slice
    return heat
  }

  /** An entry's heat in its window now. */
  heatOf(index: number): number {
    const { dict } = this
    const words = dict.wordsOf(index)
    const at = dict.payloadAt(index)
    if (((words[at]! >>> generationShift) & generationMask) !== this.#generation) this.#rematch(index)
    const floats = dict.floatsOf(index)
    const slice = this.#rules.slice[(words[at]! >>> ruleShift) & ruleMask]!
    if (words[at + sliceWord] !== slice) this.#rotate(words, floats, at, slice)
    return floats[at + totalWord]!
  }

  /** An entry's slices, newest first, and after them how long ago the newest began. */
  slicesOf(index: number, into: Float64Array): void {
    this.heatOf(index)
    const { dict, slices } = this
    const rule = this.ruleOf(index)
    const ring = dict.payloadAt(index) + ringWord
    const floats = dict.floatsOf(index)
    const slice = this.#rules.slice[rule]!
    for (let age = 0; age < slices; age++) into[age] = floats[ring + ((slice - age + slices) % slices)]!
    into[slices] = this.#elapsedMs - slice * this.#rules.sliceMs[rule]!
  }

  /** The index of the entry's rule. */
  ruleOf(index: number): number {
    return (this.#metaOf(index) >>> ruleShift) & ruleMask
  }

  slotOf(index: number): number {
    return this.#metaOf(index) & slotMask
  }

  /** A mark of the owner's. */
  isMarked(index: number): boolean {
    return this.#metaOf(index) < 0
  }

  setMark(index: number, isMarked: boolean): void {
    const words = this.dict.wordsOf(index)
    const at = this.dict.payloadAt(index)
    words[at] = isMarked ? words[at]! | markBit : words[at]! & ~markBit
  }

  /** False where one more change of rules would give two generations one number: finish a pass first. */
  get canChangeRules(): boolean {
    return this.#generationsInUse < generationMask
  }

  setRules(source: WindowRules): void {
    const rules = new CompiledRules(source, this.slices)
    this.#generation = (this.#generation + 1) & generationMask
    this.#generationsInUse++
    this.#changesInPass++
    rules.moveTo(this.#elapsedMs)
    this.#rules = rules
    this.#ruleSets[this.#generation] = rules
  }

  /** The owner has looked at every entry since it last said so. */
  passDone(): void {
    this.#generationsInUse = this.#changesInPass + 1
    this.#changesInPass = 0
  }

  #metaOf(index: number): number {
    return this.dict.wordsOf(index)[this.dict.payloadAt(index)]!
  }

  #rotate(words: Int32Array, floats: Float32Array, at: number, slice: number): void {
    const { slices } = this
    const ring = at + ringWord
    const last = words[at + sliceWord]!
    words[at + sliceWord] = slice
    if (slice - last >= slices) {
      floats.fill(0, at + totalWord, ring + slices)
      return
    }
    for (let passed = last + 1; passed <= slice; passed++) floats[ring + (passed % slices)] = 0
    // Summed anew instead of taken off: floats would keep what rounding left.
    let total = 0
    for (let place = ring; place < ring + slices; place++) total += floats[place]!
    floats[at + totalWord] = total
  }

  /** Finds the rule of an entry that was counted by older rules, and carries its heat over. */
  #rematch(index: number): void {
    const { dict } = this
    const words = dict.wordsOf(index)
    const at = dict.payloadAt(index)
    const floats = dict.floatsOf(index)
    const meta = words[at]!
    const before = this.#ruleSets[(meta >>> generationShift) & generationMask]!
    const ruleBefore = (meta >>> ruleShift) & ruleMask
    const key = dict.keyAt(index)
    const rule = this.#rules.source.match(key, 0, key.length)
    words[at] = (meta & (markBit | slotMask)) | (this.#generation << generationShift) | (rule << ruleShift)
    if (this.#rules.continues(rule, before, ruleBefore)) return
    before.moveTo(this.#elapsedMs)
    this.#rotate(words, floats, at, before.slice[ruleBefore]!)
    // What was counted in the old window is certain for a longer one, and a share of it for a shorter one; in another
    // measure it says nothing.
    const share = Math.min(1, this.#rules.sliceMs[rule]! / before.sliceMs[ruleBefore]!)
    const carried = this.#rules.hasWeightsOf(rule, before, ruleBefore) ? floats[at + totalWord]! * share : 0
    floats.fill(0, at + totalWord, at + ringWord + this.slices)
    words[at + sliceWord] = this.#rules.slice[rule]!
    floats[at + ringWord + this.#rules.place[rule]!] = carried
    floats[at + totalWord] = carried
    this.onRestart(index)
  }
}
