import { startProxy } from '@firebreak/proxy'

// The proxy of `bench/proxy.ts`, in a process of its own so that its CPU can be told, and as it is published: Node strips
// types in WebAssembly, whose growing memory costs V8 a promise (no buffer was ever detached) that all code for bytes is
// faster with.
const proxy = await startProxy(JSON.parse(process.argv[2]))
process.stdout.write(`listening ${proxy.port}\n`)
