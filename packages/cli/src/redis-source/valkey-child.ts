// The embedded Valkey's process: `node valkey-child.ts PORT`. A separate process, so that a busy event loop of the hub
// or of a benchmark does not slow down Redis, or the reverse. Ends when its parent does (stdin closes).
import { startPromptValkey } from './prompt-valkey.ts'

const server = await startPromptValkey(Number(process.argv[2]))
const end = async () => {
  await server.stop()
  process.exit(0)
}
process.on('SIGTERM', end)
process.on('SIGINT', () => {})
process.stdin.on('end', end).on('error', end).resume()
process.stdout.write('ready\n')
