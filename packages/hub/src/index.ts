export { type LimitsRoutesOptions, limitsRoutes } from './limits/limits-routes.ts'
export { type LimitsServer, type LimitsServerOptions, startLimitsServer } from './limits/limits-server.ts'
