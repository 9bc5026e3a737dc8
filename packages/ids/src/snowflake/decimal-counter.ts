const group = 10_000
const groupDigits = Array.from({ length: group }, (_, index) => String(index).padStart(4, '0'))
const plainDigits = Array.from({ length: group }, (_, index) => String(index))

/**
 * Decimal text of large numbers that mostly grow by small steps.
 *
 * `BigInt.toString` divides all 64 bits again for each id. Neighbouring ids share all but their last four digits, so the
 * number is kept as `high × 10,000 + low`: the text of `high` is made once per ten thousand numbers, and that of `low`
 * comes from a table. One id is then a table look-up and one concatenation (`bench/ids`: snowflake-per-second).
 */
export class DecimalCounter {
  #high = 0n
  #low = 0
  #prefix = ''

  /** Starts at `value`, which is not negative. */
  reset(value: bigint): void {
    this.#high = value / 10_000n
    this.#low = Number(value % 10_000n)
    this.#prefix = this.#high === 0n ? '' : String(this.#high)
  }

  /** The text of the number, which then grows by one. */
  next(): string {
    if (this.#low === group) {
      this.#high += 1n
      this.#prefix = String(this.#high)
      this.#low = 0
    }
    const low = this.#low++
    return this.#prefix === '' ? plainDigits[low]! : this.#prefix + groupDigits[low]!
  }
}
