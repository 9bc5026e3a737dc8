export type { MariadbPool, PostgresPool } from '@firebreak/ids'
export { SaleBoard, type SaleOrderView, type VoucherView } from './board/sale-board.ts'
export {
  type DeadLetter,
  DeadLetters,
  type ListOptions,
} from './dead-letters/dead-letters.ts'
export type { RemoveResult } from './end/remove-voucher.ts'
export { DeadLetterError, OrderStoreError, SaleError, type SaleErrorCode } from './errors.ts'
export { OrderWorker, type OrderWorkerOptions } from './orders/order-worker.ts'
export type { OrderWorkerCounts } from './orders/voucher-lane.ts'
export {
  type OrderIds,
  type OrderView,
  type PurchaseOptions,
  type PurchaseResult,
  Sale,
  type SaleOptions,
} from './purchase/sale.ts'
export type { OrderState, SettleResult } from './purchase/settle-order.ts'
export { SoldOutMemory, type SoldOutMemoryOptions } from './purchase/sold-out-memory.ts'
export type { IdWorker } from './purchase/worker-claim.ts'
export { registryKey, type SaleKeys, saleKeys } from './sale-keys.ts'
export { mariadbOrderStore } from './store/mariadb.ts'
export type { OrderEvent, OrderStore, StoredOrder, StoreResult } from './store/order-store.ts'
export { postgresOrderStore } from './store/postgres.ts'
export type { SqlOrderStoreOptions } from './store/sql-order-store.ts'
export { sqliteOrderStore } from './store/sqlite.ts'
export type { Voucher } from './voucher.ts'
