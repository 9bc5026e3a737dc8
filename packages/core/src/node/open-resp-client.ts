import { addressOf, type RedisTarget } from '../connection/redis-target.ts'
import { RespClient, type RespClientOptions } from '../connection/resp-client.ts'
import { nodePipe } from './node-pipe.ts'

/** Connects to a server over Node's sockets, with the user and database that the target names. */
export function openRespClient(target: RedisTarget, options: Partial<RespClientOptions> = {}): Promise<RespClient> {
  const { username, password, database, connectTimeoutMs } = target
  return RespClient.open(nodePipe(target), {
    address: addressOf(target),
    username,
    password,
    database,
    ...(connectTimeoutMs === undefined ? {} : { connectTimeoutMs }),
    ...options,
  })
}
