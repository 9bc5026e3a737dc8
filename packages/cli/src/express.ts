export { type FirebreakMiddleware, firebreak } from '@firebreak/client/express'
