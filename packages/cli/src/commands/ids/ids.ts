import { AlarmReporter } from '@firebreak/core/node'
import { startIdsServer } from '@firebreak/hub'
import {
  EtcdRegistry,
  type IdsAlarm,
  openSegmentStore,
  RedisRegistry,
  type RegistryOptions,
  SegmentIds,
  type SegmentStore,
  SnowflakeNode,
  type WorkerRegistry,
  ZooKeeperRegistry,
} from '@firebreak/ids'
import { ioredisOptions } from '@firebreak/redis'
import type { Command, CommandIo } from '../../command/command.ts'
import { whenEnded } from '../../command/when-ended.ts'
import { flagsOf, helpOf } from '../../flags/command-settings.ts'
import { type IdsOptions, idsOptionsOf } from './ids-options.ts'
import { idsSettings } from './ids-settings.ts'

export const ids: Command = {
  flags: flagsOf(idsSettings),
  help: `Issue unique ids over HTTP and RESP: segments from a database, snowflakes from a clock.

Examples:
  firebreak ids --tag order:1000 --worker-id 7
  curl http://127.0.0.1:8070/api/segment/get/order
  curl http://127.0.0.1:8070/api/snowflake/get/any?count=10
  redis-cli -p 8071 INCR order
  firebreak ids --database mysql://user:password@db/ids --zookeeper zk1:2181,zk2:2181 --cache-file worker.json

Snowflakes need one of --zookeeper, --etcd, --redis or --worker-id.

${helpOf(idsSettings)}
Health: GET /livez, /readyz. SIGTERM stops it cleanly.
`,
  async run(args, io) {
    const ended = whenEnded(io.signal)
    const flags = idsOptionsOf(args, io)
    const { hub } = flags
    const reporter =
      hub &&
      new AlarmReporter({ hubUrl: hub.url, serviceId: 'ids', ...(hub.token !== undefined && { token: hub.token }) })
    const onAlarm = (alarm: IdsAlarm) => {
      io.stderr.write(`alarm ${alarm.code}: ${alarm.message}\n`)
      reporter?.tell('ids', alarm)
    }
    const segments = await openSegments(flags, onAlarm)
    let closeRegistry: () => unknown = () => {}
    try {
      const server = await startIdsServer({
        host: flags.host,
        port: flags.port,
        respPort: flags.respPort,
        segments,
        ...flags.bounds,
        ...(flags.token === undefined ? {} : { token: flags.token }),
        ...(flags.registry.kind === 'none'
          ? {}
          : {
              startSnowflake: async (port: number) => {
                const opened = await openRegistry(flags, port)
                closeRegistry = opened.close
                return startNode(flags, port, opened.registry, io, onAlarm)
              },
            }),
      })
      const { host, port, respPort, service } = server
      const worker =
        service.snowflake === undefined
          ? 'no snowflakes (see --zookeeper, --worker-id)'
          : `worker ${service.snowflake.workerId}`
      io.stdout.write(`ids: http://${host}:${port}, redis://${host}:${respPort}, ${worker}\n`)
      await ended
      await server.close()
      return 0
    } finally {
      closeRegistry()
      reporter?.stop()
    }
  },
}

async function openSegments(flags: IdsOptions, onAlarm: (alarm: IdsAlarm) => void): Promise<SegmentIds> {
  const stores: SegmentStore[] = []
  for (const address of flags.databases) stores.push(await openSegmentStore(address))
  const segments = await SegmentIds.start({ stores, onAlarm })
  for (const { name, step } of flags.tags) {
    await segments.addTag(name, { step }).catch((error: { code?: string; message: string }) => {
      if (error.code === 'FB_IDS_TAG_EXISTS') return
      if (error.code === 'FB_OPTION_INVALID') throw error
      // A database that is down now may be up when ids are requested, and may have the tag.
      onAlarm({ code: 'FB_IDS_DATABASE_DOWN', message: `the tag ${name} could not be added (${error.message})` })
    })
  }
  return segments
}

interface OpenedRegistry {
  readonly registry: WorkerRegistry | undefined
  close(): void
}

async function openRegistry({ registry, root, address }: IdsOptions, port: number): Promise<OpenedRegistry> {
  const options: RegistryOptions = { address: address(port), ...(root === undefined ? {} : { root }) }
  const close = () => {}
  switch (registry.kind) {
    case 'zookeeper':
      return { registry: new ZooKeeperRegistry({ ...options, servers: registry.servers }), close }
    case 'etcd':
      return { registry: new EtcdRegistry({ ...options, endpoints: registry.servers }), close }
    case 'redis': {
      const { Redis } = await import('ioredis')
      const client = new Redis({ ...ioredisOptions(registry.servers), maxRetriesPerRequest: 1 })
      // It reconnects by itself; the registry's own deadlines report when that takes too long.
      client.on('error', () => {})
      return { registry: new RedisRegistry({ ...options, redis: client }), close: () => client.disconnect() }
    }
    default:
      return { registry: undefined, close }
  }
}

function startNode(
  flags: IdsOptions,
  port: number,
  registry: WorkerRegistry | undefined,
  io: CommandIo,
  onAlarm: (alarm: IdsAlarm) => void,
): Promise<SnowflakeNode> {
  return SnowflakeNode.start({
    ...(registry === undefined ? {} : { registry }),
    ...(flags.registry.kind === 'static' ? { workerId: flags.registry.workerId } : {}),
    address: flags.address(port),
    cacheFile: flags.cacheFile ?? `firebreak-ids-${port}.json`,
    ...(flags.epochMs === undefined ? {} : { epochMs: flags.epochMs }),
    ...(flags.peerThresholdMs === undefined ? {} : { peerThresholdMs: flags.peerThresholdMs }),
    onAlarm,
    onLog: (message) => void io.stderr.write(`${message}\n`),
  })
}
