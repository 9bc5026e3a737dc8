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

/** The stores' columns have these widths; they bind every store, so that one can take another's place. */
export const maxUserIdLength = 255
const idPattern = /^[^{}\s]{1,128}$/
const orderIdPattern = /^[\x21-\x7e]{1,64}$/

/** Throws where a voucher makes no sense, naming the field. */
export function checkVoucher(voucher: Voucher): void {
  const wrong = (field: string, value: unknown, expected: string) => voucherWrong(voucher.id, field, value, expected)
  checkVoucherId(voucher.id)
  for (const field of ['begin', 'end'] as const) {
    if (!Number.isSafeInteger(voucher[field]) || voucher[field] < 0 || voucher[field] > 1e14)
      throw wrong(field, voucher[field], 'a Unix time in whole seconds')
  }
  if (voucher.end < voucher.begin) throw wrong('end', voucher.end, `no earlier than begin (${voucher.begin})`)
  if (!Number.isSafeInteger(voucher.stock) || voucher.stock < 0 || voucher.stock > 1e14)
    throw wrong('stock', voucher.stock, 'a whole number of 0 or more')
  const { perUser = 1 } = voucher
  if (!Number.isSafeInteger(perUser) || perUser < 1) throw wrong('perUser', perUser, 'a whole number of 1 or more')
}

/** Throws where no voucher can have this id. */
export function checkVoucherId(voucherId: string): void {
  if (typeof voucherId === 'string' && idPattern.test(voucherId) && isStorable(voucherId)) return
  throw voucherWrong(String(voucherId), 'id', voucherId, '1 to 128 characters without braces and blanks')
}

/** A voucher's hash holds something that cannot be sold by. */
export function voucherWrong(voucherId: string, field: string, value: unknown, expected: string): SaleError {
  const shown = typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : String(value)
  return new SaleError(
    'FB_SALE_VOUCHER_INVALID',
    voucherId,
    `voucher ${voucherId}: ${field} is ${shown}; it must be ${expected}`,
  )
}

/** What is wrong with a user id; undefined: nothing. Ids are compared by their bytes, blanks and case included. */
export function userIdTrouble(userId: string): string | undefined {
  if (typeof userId !== 'string') return `it is of type ${typeof userId}, not a string`
  if (userId === '') return 'it is empty'
  if (userId.length > maxUserIdLength) return `it has ${userId.length} characters, more than ${maxUserIdLength}`
  if (!isStorable(userId)) return 'it holds a NUL or half of a surrogate pair, which no database stores'
  return undefined
}

/** What is wrong with an order id; undefined: nothing. */
export function orderIdTrouble(orderId: string): string | undefined {
  if (typeof orderId === 'string' && orderIdPattern.test(orderId)) return undefined
  return 'it must be 1 to 64 visible ASCII characters'
}

function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed()
}
