import { startProxy } from '@firebreak/proxy'

// The proxy of `bench/proxy.ts`, in a process of its own so that its CPU can be told.
const proxy = await startProxy(JSON.parse(process.argv[2]!))
process.stdout.write(`listening ${proxy.port}\n`)
