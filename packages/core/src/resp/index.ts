// `@firebreak/core/resp`: RESP, and connections that speak it.
export type { BytePipe, OpenPipe, PipeOwner } from '../connection/byte-pipe.ts'
export { type Greeting, type GreetingResult, greet } from '../connection/greeting.ts'
export { type RedisLostCode, RedisLostError, RedisReplyError, RedisUrlError } from '../connection/redis-error.ts'
export {
  addressOf,
  defaultRedisPort,
  maskUrl,
  parseRedisUrl,
  parseRedisUrls,
  type RedisTarget,
  type RedisTlsOptions,
} from '../connection/redis-target.ts'
export { RespClient, type RespClientOptions } from '../connection/resp-client.ts'
export {
  isErrorReply,
  type ReplyHandler,
  RespConnection,
  type RespConnectionOptions,
} from '../connection/resp-connection.ts'
export { parseInfo, type ServerMode, serverModeOf } from '../connection/server-info.ts'
export { type CommandArgument, encodeCommand } from './encode-command.ts'
export { encodeReply, type RespVersion, writeReply } from './encode-reply.ts'
export { refuseHttp } from './http-request.ts'
export { defaultRespLimits, type RespLimits } from './limits.ts'
export { ReplyDecoder, type ReplyDecoderOptions } from './reply-decoder.ts'
export { ReplyScanner } from './reply-scanner.ts'
export { RequestParser, type RequestParserOptions } from './request-parser.ts'
export { RequestError, RespError, type RespErrorCode } from './resp-error.ts'
export { textOf, utf8Length, writeUtf8 } from './text.ts'
export {
  Attributed,
  BigNumber,
  Double,
  ErrorReply,
  MapReply,
  PushReply,
  type RespValue,
  SetReply,
  Verbatim,
} from './value.ts'
