import { addressOf, defaultRedisPort, type RedisTarget } from '@firebreak/core/resp'
import type { RedisSource } from '../redis-source/redis-source.ts'

/** Code for an application that uses this Redis and this hub; a password is read from the environment, never shown. */
export function snippetOf(redis: Pick<RedisSource, 'url' | 'targets' | 'isCluster'>, hubUrl: string): string {
  const library = redis.isCluster ? 'Cluster' : 'Redis'
  const { before = [], client } = redis.isCluster ? clusterOf(redis.targets) : singleOf(redis)
  return `import { protect } from 'firebreak'
import { ${library} } from 'ioredis'
${before.map((line) => `\n${line}`).join('')}
const redis = protect(${client}, {
  hubs: ['${hubUrl}'],
  serviceId: 'shop',
})
`
}

interface ClientCode {
  /** Lines before it. */
  readonly before?: readonly string[]
  /** The expression that makes the client. */
  readonly client: string
}

function singleOf({ url, targets }: Pick<RedisSource, 'url' | 'targets'>): ClientCode {
  const [target] = targets as [RedisTarget]
  const { socketPath, username, password, database } = target
  // ioredis does not parse URLs of Unix sockets.
  if (socketPath !== undefined) {
    const fields = [
      `path: ${quoted(socketPath)}`,
      ...(username === undefined ? [] : [`username: ${quoted(username)}`]),
      ...(password === undefined ? [] : ['password: process.env.REDIS_PASSWORD']),
      ...(database === undefined ? [] : [`db: ${database}`]),
    ]
    return {
      ...(password !== undefined && { before: ['// REDIS_PASSWORD: the password of this Redis'] }),
      client: `new Redis({ ${fields.join(', ')} })`,
    }
  }
  if (password === undefined) return { client: `new Redis(${quoted(url)})` }
  return { before: [secretLine(targets)], client: 'new Redis(process.env.REDIS_URL)' }
}

function clusterOf(targets: readonly RedisTarget[]): ClientCode {
  const [{ username, password, tls }] = targets as [RedisTarget]
  const nodes = targets.map(
    ({ host = '127.0.0.1', port = defaultRedisPort }) => `{ host: ${quoted(host)}, port: ${port} }`,
  )
  const options = [
    ...(username === undefined || password !== undefined ? [] : [`username: ${quoted(username)}`]),
    ...(password === undefined ? [] : ['username', 'password: decodeURIComponent(password)']),
    ...(tls === undefined ? [] : ['tls: {}']),
  ]
  const more = options.length === 0 ? '' : `, { redisOptions: { ${options.join(', ')} } }`
  const client = `new Cluster([${nodes.join(', ')}]${more})`
  if (password === undefined) return { client }
  const login = "const { username, password } = new URL(process.env.REDIS_URL.split(',')[0])"
  return { before: [secretLine(targets), login], client }
}

/** Says which variable the code reads, and what it holds but for the password. */
function secretLine(targets: readonly RedisTarget[]): string {
  const [{ username = '', tls }] = targets as [RedisTarget]
  const scheme = tls === undefined ? 'redis' : 'rediss'
  return `// REDIS_URL: ${scheme}://${username}:PASSWORD@${targets.map(addressOf).join(',')}`
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
