import { FirebreakError } from '@firebreak/core'

/** The sale was used wrongly: a voucher that makes no sense, or one that does not exist. */
export class SaleError extends FirebreakError {
  readonly voucherId: string

  constructor(code: 'FB_SALE_VOUCHER_INVALID' | 'FB_SALE_VOUCHER_UNKNOWN', voucherId: string, message: string) {
    super(code, message)
    this.voucherId = voucherId
  }
}

/** The order store refused or failed. */
export class OrderStoreError extends FirebreakError {
  constructor(message: string, options?: ErrorOptions) {
    super('FB_SALE_STORE', message, options)
  }
}
