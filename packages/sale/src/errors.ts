import { FirebreakError } from '@firebreak/core'

/** Errors of sale calls; each code is listed in `docs/reference/errors.md`. */
export type SaleErrorCode =
  | 'FB_SALE_ORDER_INVALID'
  | 'FB_SALE_ORDER_TAKEN'
  | 'FB_SALE_USER_INVALID'
  | 'FB_SALE_VOUCHER_INVALID'
  | 'FB_SALE_VOUCHER_UNKNOWN'
  | 'FB_SALE_WORKER_TAKEN'

/** The sale was used incorrectly: an invalid, unknown or already used voucher, user or order id. */
export class SaleError extends FirebreakError {
  readonly voucherId: string

  constructor(code: SaleErrorCode, voucherId: string, message: string) {
    super(code, message)
    this.voucherId = voucherId
  }
}

/**
 * The order store failed. `FB_SALE_STORE_DOWN`: it could not be reached or used, whatever the data. `FB_SALE_STORE`: it
 * refused this data, and will again.
 */
export class OrderStoreError extends FirebreakError {
  readonly isOutage: boolean

  constructor(code: 'FB_SALE_STORE' | 'FB_SALE_STORE_DOWN', message: string, options?: ErrorOptions) {
    super(code, message, options)
    this.isOutage = code === 'FB_SALE_STORE_DOWN'
  }
}

/** An entry of an orders stream that cannot be stored; it is kept among the dead letters. */
export class DeadLetterError extends FirebreakError {
  readonly voucherId: string
  readonly entryId: string
  readonly reason: string

  constructor(voucherId: string, entryId: string, reason: string) {
    super(
      'FB_SALE_DEAD_LETTER',
      `entry ${entryId} of voucher ${voucherId} is a dead letter: ${reason}; see "firebreak sale dead list"`,
    )
    this.voucherId = voucherId
    this.entryId = entryId
    this.reason = reason
  }
}
