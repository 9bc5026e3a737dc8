export { type ArgumentOffsets, BufferArgs, type CommandArgs, ListArgs } from './commands/command-args.ts'
export type {
  CommandFlag,
  CommandRow,
  CommandType,
  KeyAccess,
} from './commands/command-row.ts'
export { allCommands, commandOf, commandOfArgs, commandOfBytes } from './commands/command-table.ts'
export type { KeyRule, KeySpec } from './commands/key-spec.ts'
export {
  firstKeyIndex,
  forEachKey,
  isCacheable,
  type KeyArgument,
  type KeyVisitor,
  keysOf,
  mayBlock,
} from './commands/keys-of.ts'
export { NameTable } from './commands/name-table.ts'
export { didYouMean } from './errors/did-you-mean.ts'
export { describeValue, FirebreakError, InvalidOptionError } from './errors/firebreak-error.ts'
export { ByteWriter } from './resp/byte-writer.ts'
export { type CommandArgument, encodeCommand } from './resp/encode-command.ts'
export { encodeReply, type RespVersion, writeReply } from './resp/encode-reply.ts'
export { defaultRespLimits, type RespLimits } from './resp/limits.ts'
export { ReplyDecoder, type ReplyDecoderOptions } from './resp/reply-decoder.ts'
export { ReplyScanner } from './resp/reply-scanner.ts'
export { RequestParser, type RequestParserOptions } from './resp/request-parser.ts'
export { RequestError, RespError, type RespErrorCode } from './resp/resp-error.ts'
export { textOf, utf8Length, writeUtf8 } from './resp/text.ts'
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
} from './resp/value.ts'
export { keySlot, keySlotOfBytes, slotCount } from './slots/key-slot.ts'
export { type Clock, steadyClock, systemTimers, type TimerHandle, type Timers, wallClock } from './time/clock.ts'
