import { createHash, timingSafeEqual } from 'node:crypto'
import type { Clock } from '@firebreak/core'
import { PasswordGuard } from '@firebreak/core/node'
import { ErrorReply, encodeReply, MapReply, type RespValue, type RespVersion } from '@firebreak/core/resp'
import { IdsError, messageOf } from '../errors.ts'
import type { Given, IdService } from './id-service.ts'

/** A connection's state. */
export interface RespConnectionState {
  version: RespVersion
  isAllowed: boolean
  isQuitting: boolean
  /** Where the client is. */
  readonly address: string
}

/** Limits wrong passwords, and reports them. */
export interface RespPasswords {
  readonly clock: Clock
  readonly warn: (message: string) => void
}

const ok = '+OK\r\n'
/**
 * Wrong tokens allowed from an address: more than for a password, because a token is long and all clients there share
 * it.
 */
const guesses = 60

/**
 * Issues ids through Redis commands. To `INCR` a tag is a counter, to `LPOP` an endless list:
 *
 * - `INCR key` returns the next id as an integer. Clients that read integers as floats round ids above 2^53; for them
 * - `LPOP key [count]` returns the same as text, one or many.
 *
 * The key `snowflake`, alone or followed by `:anything`, stands for snowflakes; every other key is a segment tag.
 */
export class RespCommands {
  readonly #service: IdService
  readonly #token: string | undefined
  readonly #guard: PasswordGuard
  readonly #warn: (message: string) => void

  constructor(service: IdService, token: string | undefined, { clock, warn }: RespPasswords) {
    this.#service = service
    this.#token = token
    this.#guard = new PasswordGuard({ clock, burst: guesses, perMinute: guesses })
    this.#warn = warn
  }

  newConnection(address = ''): RespConnectionState {
    return { version: 2, isAllowed: this.#token === undefined, isQuitting: false, address }
  }

  /** The reply to one request, in wire format. */
  answer(name: string, args: readonly string[], state: RespConnectionState): Given<string> {
    try {
      if (!state.isAllowed && !['AUTH', 'HELLO', 'QUIT'].includes(name)) {
        return '-NOAUTH Authentication required.\r\n'
      }
      switch (name) {
        case 'INCR':
          return args.length === 1 ? this.#increment(args[0]!) : wrongCount(name)
        case 'LPOP':
          return args.length === 1 || args.length === 2 ? this.#pop(args[0]!, args[1]) : wrongCount(name)
        default:
          return this.#other(name, args, state)
      }
    } catch (error) {
      return errorLine(error)
    }
  }

  #increment(key: string): Given<string> {
    const id = this.#next(key)
    return typeof id === 'string' ? `:${id}\r\n` : id.then((text) => `:${text}\r\n`, errorLine)
  }

  #pop(key: string, count: string | undefined): Given<string> {
    if (count === undefined) {
      const id = this.#next(key)
      return typeof id === 'string' ? bulk(id) : id.then(bulk, errorLine)
    }
    const wanted = /^\d{1,9}$/.test(count) ? Number(count) : Number.NaN
    const list = (ids: string[]) => `*${ids.length}\r\n${ids.map(bulk).join('')}`
    if (isSnowflakeKey(key)) return list(this.#service.snowflakeMany(wanted))
    return this.#service.segmentMany(key, wanted).then(list, errorLine)
  }

  #next(key: string): Given<string> {
    return isSnowflakeKey(key) ? this.#service.nextSnowflake() : this.#service.segment(key)
  }

  /** Commands that client libraries send besides their work. */
  #other(name: string, args: readonly string[], state: RespConnectionState): string {
    switch (name) {
      case 'PING':
        return args[0] === undefined ? '+PONG\r\n' : bulk(args[0])
      case 'ECHO':
        return args[0] === undefined ? wrongCount(name) : bulk(args[0])
      case 'AUTH':
        return this.#authenticate(args.at(-1), state) ?? ok
      case 'HELLO':
        return this.#hello(args, state)
      case 'QUIT':
        state.isQuitting = true
        return ok
      case 'SELECT':
        return args[0] === '0' ? ok : '-ERR DB index is out of range\r\n'
      case 'CLIENT':
        return args[0]?.toUpperCase() === 'ID' ? ':1\r\n' : ok
      case 'COMMAND':
        return '*0\r\n'
      case 'INFO':
        return bulk(this.#info())
      default:
        return encode(new ErrorReply(`ERR unknown command '${name.slice(0, 64)}'; ids come from INCR and LPOP`), state)
    }
  }

  #hello(args: readonly string[], state: RespConnectionState): string {
    const [version = String(state.version), ...rest] = args
    if (version !== '2' && version !== '3') return '-NOPROTO unsupported protocol version\r\n'
    const auth = rest.findIndex((word) => word.toUpperCase() === 'AUTH')
    const refusal = auth < 0 ? undefined : this.#authenticate(rest[auth + 2], state)
    if (refusal !== undefined) return refusal
    if (!state.isAllowed) return '-NOAUTH HELLO must be called with the client already authenticated\r\n'
    state.version = version === '3' ? 3 : 2
    // Client libraries look at the version to know which commands there are.
    const about = {
      server: 'firebreak-ids',
      version: '7.0.0',
      proto: state.version,
      id: 1,
      mode: 'standalone',
      role: 'master',
    }
    const items = Object.entries(about).flatMap(([field, value]): RespValue[] => [
      Buffer.from(field),
      typeof value === 'string' ? Buffer.from(value) : value,
    ])
    return encode(new MapReply([...items, Buffer.from('modules'), []]), state)
  }

  /** Lets the client in, or returns the reply that refuses it. */
  #authenticate(password: string | undefined, state: RespConnectionState): string | undefined {
    const { address } = state
    const waitMs = this.#guard.waitMs(address, '')
    // Clients already logged in are unaffected: the guesser may be another application at the same address.
    if (waitMs > 0) {
      return `-ERR too many wrong passwords from your address: try again in ${Math.ceil(waitMs / 1000)} s\r\n`
    }
    state.isAllowed = this.#token === undefined || isSame(password ?? '', this.#token)
    if (state.isAllowed) return undefined
    const isLast = this.#guard.failed(address, '')
    const told = isLast ? '; further attempts are refused for some seconds' : ''
    this.#warn(`a client at ${address} sent the id service a wrong password${told}`)
    return wrongPassword
  }

  #info(): string {
    const { snowflake, segments, given } = this.#service
    const status = snowflake?.status()
    const lines = ['# Server', 'redis_version:7.0.0', 'redis_mode:standalone', '# Ids', `ids_given:${given}`]
    if (status !== undefined) lines.push(`snowflake_state:${status.state}`, `snowflake_worker:${status.workerId}`)
    if (segments !== undefined) lines.push(`segment_tags:${segments.buffers().length}`)
    return `${lines.join('\r\n')}\r\n`
  }
}

const wrongPassword = '-WRONGPASS invalid username-password pair or user is disabled.\r\n'

/** Takes equally long for a good guess and a bad one. */
function isSame(given: string, wanted: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(wanted))
}

function isSnowflakeKey(key: string): boolean {
  return key === 'snowflake' || key.startsWith('snowflake:')
}

function bulk(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`
}

function wrongCount(name: string): string {
  return `-ERR wrong number of arguments for '${name.toLowerCase()}' command\r\n`
}

function encode(value: RespValue, state: RespConnectionState): string {
  return Buffer.from(encodeReply(value, state.version)).toString()
}

function errorLine(error: unknown): string {
  const code = error instanceof IdsError ? `${error.code}: ` : ''
  return `-ERR ${code}${messageOf(error).replace(/[\r\n]+/g, ' ')}\r\n`
}
