import { SaleError } from './errors.ts'

/** What is on sale, when, and how much of it. */
export interface Voucher {
  readonly id: string
  /** First second of the sale, Unix time, inclusive. */
  readonly begin: number
  /** Last second of the sale, Unix time, inclusive. */
  readonly end: number
  readonly stock: number
  /** Orders that one user may hold. @default 1 */
  readonly perUser?: number
}

const idPattern = /^[^{}\s]{1,128}$/

/** Throws where a voucher makes no sense, naming the field. */
export function checkVoucher(voucher: Voucher): void {
  const wrong = (field: string, value: unknown, expected: string) =>
    new SaleError(
      'FB_SALE_VOUCHER_INVALID',
      voucher.id,
      `voucher ${voucher.id}: ${field} is ${String(value)}; it must be ${expected}`,
    )
  if (!idPattern.test(voucher.id)) throw wrong('id', voucher.id, '1 to 128 characters without braces and blanks')
  for (const field of ['begin', 'end'] as const) {
    if (!Number.isSafeInteger(voucher[field]) || voucher[field] < 0)
      throw wrong(field, voucher[field], 'a Unix time in whole seconds')
  }
  if (voucher.end < voucher.begin) throw wrong('end', voucher.end, `no earlier than begin (${voucher.begin})`)
  if (!Number.isSafeInteger(voucher.stock) || voucher.stock < 0)
    throw wrong('stock', voucher.stock, 'a whole number of 0 or more')
  const { perUser = 1 } = voucher
  if (!Number.isSafeInteger(perUser) || perUser < 1) throw wrong('perUser', perUser, 'a whole number of 1 or more')
}
