import { startProxy } from '@firebreak/proxy'

// A proxy in a process of its own, so that its memory can be told.
const proxy = await startProxy(JSON.parse(process.argv[2]!))
process.stdout.write(`listening ${proxy.port}\n`)
