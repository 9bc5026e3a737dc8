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
import type { Command, CommandIo } from '../../command/command.ts'
import { flagNames, type IdsFlags, parseIdsFlags } from './ids-flags.ts'

export const ids: Command = {
  flags: flagNames,
  help: `Give unique ids over HTTP and RESP: segments from a database, snowflakes from a clock.

Examples:
  firebreak ids --tag order:1000 --worker-id 7
  curl http://127.0.0.1:8070/api/segment/get/order
  curl http://127.0.0.1:8070/api/snowflake/get/any?count=10
  redis-cli -p 8071 INCR order
  firebreak ids --database mysql://user:password@db/ids --zookeeper zk1:2181,zk2:2181 --cache-file worker.json

Listening:
  --host HOST          anywhere but loopback only with a token (env FIREBREAK_IDS_HOST; default 127.0.0.1)
  --port PORT          for HTTP, 0 for a free one (env FIREBREAK_IDS_PORT; default 8070)
  --resp-port PORT     for Redis clients, 0 for a free one (env FIREBREAK_IDS_RESP_PORT; default 8071)
  --token TOKEN        what clients must show (env FIREBREAK_IDS_TOKEN; default none)

Segments:
  --database URL       mysql://, postgres:// or sqlite:FILE; again for more (env FIREBREAK_IDS_DATABASE, commas between;
                       default sqlite:firebreak-ids.db)
  --tag NAME[:STEP]    adds the tag unless it is there; again for more (env FIREBREAK_IDS_TAG; step 1000)

Snowflakes, with one of:
  --zookeeper SERVERS  host:port,… (env FIREBREAK_IDS_ZOOKEEPER)
  --etcd URLS          http://host:port,… (env FIREBREAK_IDS_ETCD)
  --redis URL          redis://… (env FIREBREAK_IDS_REDIS)
  --worker-id N        0 to 1023, for those who want no registry (env FIREBREAK_IDS_WORKER_ID)
and:
  --advertise IP:PORT  this node's address in the registry (env FIREBREAK_IDS_ADVERTISE; default: where HTTP listens)
  --cache-file FILE    worker id and mark on the local disk: starts and runs without the registry
                       (env FIREBREAK_IDS_CACHE_FILE; default firebreak-ids-PORT.json)
  --root NAME          what names in the registry start with (env FIREBREAK_IDS_ROOT; default none)
  --epoch MS           where time starts (env FIREBREAK_IDS_EPOCH; default 1288834974657)
  --peer-threshold MS  how far a new node's clock may be from its peers' average
                       (env FIREBREAK_IDS_PEER_THRESHOLD; default 1000)

Health: GET /livez, /readyz. SIGTERM stops it cleanly.
`,
  async run(args, io) {
    const flags = parseIdsFlags(args, io.env)
    const onAlarm = ({ code, message }: IdsAlarm) => void io.stderr.write(`alarm ${code}: ${message}\n`)
    const segments = await openSegments(flags, onAlarm)
    let closeRegistry: () => unknown = () => {}
    try {
      const server = await startIdsServer({
        host: flags.host,
        port: flags.port,
        respPort: flags.respPort,
        segments,
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
      await aborted(io.signal)
      await server.close()
      return 0
    } finally {
      closeRegistry()
    }
  },
}

async function openSegments(flags: IdsFlags, onAlarm: (alarm: IdsAlarm) => void): Promise<SegmentIds> {
  const stores: SegmentStore[] = []
  for (const address of flags.databases) stores.push(await openSegmentStore(address))
  const segments = await SegmentIds.start({ stores, onAlarm })
  for (const { name, step } of flags.tags) {
    await segments.addTag(name, { step }).catch((error: { code?: string; message: string }) => {
      if (error.code === 'FB_IDS_TAG_EXISTS') return
      if (error.code === 'FB_OPTION_INVALID') throw error
      // A database that is down now need not be when ids are asked for, and may have the tag.
      onAlarm({ code: 'FB_IDS_DATABASE_DOWN', message: `the tag ${name} could not be added (${error.message})` })
    })
  }
  return segments
}

interface OpenedRegistry {
  readonly registry: WorkerRegistry | undefined
  close(): void
}

async function openRegistry({ registry, root, address }: IdsFlags, port: number): Promise<OpenedRegistry> {
  const options: RegistryOptions = { address: address(port), ...(root === undefined ? {} : { root }) }
  const close = () => {}
  switch (registry.kind) {
    case 'zookeeper':
      return { registry: new ZooKeeperRegistry({ ...options, servers: registry.servers }), close }
    case 'etcd':
      return { registry: new EtcdRegistry({ ...options, endpoints: registry.servers }), close }
    case 'redis': {
      const { Redis } = await import('ioredis')
      const client = new Redis(registry.servers, { maxRetriesPerRequest: 1 })
      // It connects again by itself; the registry's own deadlines tell when that takes too long.
      client.on('error', () => {})
      return { registry: new RedisRegistry({ ...options, redis: client }), close: () => client.disconnect() }
    }
    default:
      return { registry: undefined, close }
  }
}

function startNode(
  flags: IdsFlags,
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

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
