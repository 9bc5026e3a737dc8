export type { ProxyOptions } from './options.ts'
export { type FirebreakProxy, startProxy } from './start-proxy.ts'
