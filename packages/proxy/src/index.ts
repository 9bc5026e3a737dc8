export type { ProxyOptions } from './options.ts'
export { type Proxy, startProxy } from './start-proxy.ts'
