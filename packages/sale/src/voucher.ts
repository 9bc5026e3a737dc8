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

/** The widths of the stores' columns; they apply to every store, so that stores are interchangeable. */
export const maxUserIdLength = 255
const idPattern = /^[^{}\s]{1,128}$/
const orderIdPattern = /^[\x21-\x7e]{1,64}$/

/** The largest stock, limit and time: the scripts read up to 15 digits. */
export const greatestNumber = 1e14
/** A later start is in milliseconds: in seconds it would be the year 5138. */
const latestBegin = 1e11
const unixSeconds = 'a Unix time in whole seconds'
/** Their keys would be `seckill:vouchers` and `seckill:ids:<worker id>`, which the sale itself uses. */
const ownNames = /^(vouchers|ids:\d+)$/

/** Throws if a voucher is invalid, naming the field. */
export function checkVoucher(voucher: Voucher): void {
  const wrong = (field: string, value: unknown, expected: string) => voucherWrong(voucher.id, field, value, expected)
  checkVoucherId(voucher.id)
  for (const field of ['begin', 'end'] as const) {
    if (!Number.isSafeInteger(voucher[field]) || voucher[field] < 0 || voucher[field] > greatestNumber)
      throw wrong(field, voucher[field], unixSeconds)
  }
  if (voucher.begin > latestBegin) throw wrong('begin', voucher.begin, `${unixSeconds}, not milliseconds`)
  if (voucher.end < voucher.begin) throw wrong('end', voucher.end, `no earlier than begin (${voucher.begin})`)
  if (!Number.isSafeInteger(voucher.stock) || voucher.stock < 0 || voucher.stock > greatestNumber)
    throw wrong('stock', voucher.stock, 'a whole number from 0 to 10^14')
  const { perUser = 1 } = voucher
  if (!Number.isSafeInteger(perUser) || perUser < 1 || perUser > greatestNumber)
    throw wrong('perUser', perUser, 'a whole number from 1 to 10^14')
}

/** Throws if no voucher can have this id. */
export function checkVoucherId(voucherId: string): void {
  const isText = typeof voucherId === 'string' && idPattern.test(voucherId) && isStorable(voucherId)
  if (isText && ownNames.test(voucherId))
    throw voucherWrong(voucherId, 'id', voucherId, 'another name: this one is taken')
  if (isText) return
  throw voucherWrong(String(voucherId), 'id', voucherId, '1 to 128 characters without braces and blanks')
}

/** A voucher's hash contains something invalid. */
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
  if (!isStorable(userId)) return 'it contains a NUL or half of a surrogate pair, which no database can store'
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
