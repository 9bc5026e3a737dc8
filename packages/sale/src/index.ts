export { OrderStoreError, SaleError } from './errors.ts'
export { OrderWorker, type OrderWorkerCounts, type OrderWorkerOptions } from './orders/order-worker.ts'
export {
  type OrderIds,
  type OrderState,
  type PurchaseResult,
  Sale,
  type SaleOptions,
  type SettleResult,
} from './purchase/sale.ts'
export { SoldOutMemory, type SoldOutMemoryOptions } from './purchase/sold-out-memory.ts'
export { registryKey, type SaleKeys, saleKeys } from './sale-keys.ts'
export { type MariadbPool, mariadbOrderStore } from './store/mariadb.ts'
export type { OrderEvent, OrderStore, StoredOrder, StoreResult } from './store/order-store.ts'
export { type PostgresPool, postgresOrderStore } from './store/postgres.ts'
export { sqliteOrderStore } from './store/sqlite.ts'
export type { Voucher } from './voucher.ts'
