export { firebreak } from '@firebreak/client/fastify'
