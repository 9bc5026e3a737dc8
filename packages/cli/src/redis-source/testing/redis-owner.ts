// A process that owns a Redis on the port in the first argument, for a test that kills it.
import { openRedis } from '../redis-source.ts'

const { url } = await openRedis({ port: Number(process.argv[2]) })
process.stdout.write(`${url}\n`)
