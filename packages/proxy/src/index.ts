export type { ProxyUserOptions } from './client/proxy-users.ts'
export { ProxyStartError, UpstreamLostError } from './errors.ts'
export type { ProxyOptions } from './options.ts'
export { type FirebreakProxy, startProxy } from './start-proxy.ts'
