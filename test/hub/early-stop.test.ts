import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sourceArgs, startChild, startKafka, startNats, temporaryFolder } from '@firebreak/testkit'
import { expect, test } from 'vitest'

const command = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))

test.each([
  ['NATS', '--nats-url', startNats],
  ['Kafka', '--kafka-url', startKafka],
])(
  'a hub that is stopped while it connects to %s ends',
  async (_, flag, startBroker) => {
    const broker = await startBroker()
    const folder = temporaryFolder('early-stop')
    const args = [...sourceArgs, command, 'hub', '--port', '0', '--data-folder', join(folder, 'data'), flag, broker.url]
    const hub = startChild(process.execPath, args, { cwd: folder })
    await hub.printed(/^hub http/m, 60_000)
    process.kill(hub.pid, 'SIGTERM')
    // Within the time of a test: what held it would hold it for ever.
    expect(await hub.exited).toBe(0)
    await broker.stop()
  },
  90_000,
)
