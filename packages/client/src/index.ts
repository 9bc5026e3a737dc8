export { ClientUnsupportedError } from './errors.ts'
export { peek, protect, shieldOf, unprotect } from './protect.ts'
export type { ProtectOptions } from './protect-options.ts'
