import { inspect, isDeepStrictEqual } from 'node:util'
import { FirebreakError } from '@firebreak/core'
import { BufferArgs, commandOfArgs, forEachKey } from '@firebreak/core/commands'
import { encodeCommand, encodeReply, MapReply, ReplyDecoder, ReplyScanner, RequestParser } from '@firebreak/core/resp'
import { chunksOf } from '../random.ts'
import { type FuzzTarget, LawBroken } from '../target.ts'

/** What was read, and the code and message of the error that ended it. */
interface Read {
  readonly items: unknown[]
  error: string | undefined
}

/** Runs a reader until its first error of ours. */
function readUntilError(read: (items: unknown[]) => void): Read {
  const result: Read = { items: [], error: undefined }
  try {
    read(result.items)
  } catch (error) {
    if (!(error instanceof FirebreakError)) throw error
    result.error = `${error.code} ${error.message}`
  }
  return result
}

function mustAgree(whole: Read, other: Read, what: string): void {
  if (isDeepStrictEqual(whole, other)) return
  const shown = (read: Read) => inspect(read, { depth: 4, maxArrayLength: 8, maxStringLength: 80, breakLength: 200 })
  throw new LawBroken(`${what}: ${shown(whole)} but ${shown(other)}`)
}

const respWords = [
  '\r\n',
  '*1\r\n',
  '*-1\r\n',
  '$0\r\n\r\n',
  '$-1\r\n',
  '*?\r\n',
  '$?\r\n',
  ';0\r\n',
  '.\r\n',
  '|1\r\n',
  '%1\r\n',
  '~1\r\n',
  '>1\r\n',
  '=4\r\ntxt:\r\n',
  '(1\r\n',
  ',inf\r\n',
  '#t\r\n',
  '_\r\n',
  '!1\r\nE\r\n',
  ':1\r\n',
  '+\r\n',
  '*1000000\r\n',
  '"',
  "'",
  '\\x',
  '\0',
]

/** The requests in a buffer, each as its arguments; keys are looked for as the proxy does. */
function readRequests(parser: RequestParser, buffer: Buffer, from: number, items: unknown[]): number {
  let at = from
  while (at < buffer.length) {
    const next = parser.parse(buffer, at, buffer.length)
    if (next === 0) break
    const args: string[] = []
    for (let index = 0; index < parser.length; index++) {
      args.push(Buffer.from(parser.bytes.subarray(parser.startOf(index), parser.endOf(index))).toString('latin1'))
    }
    if (parser.length > 0) {
      const view = new BufferArgs(parser)
      const row = commandOfArgs(view)
      if (row !== undefined) forEachKey(row, view, (index) => args.push(`key ${index}`))
    }
    items.push(args)
    at = next
  }
  return at
}

export const requestTarget: FuzzTarget = {
  name: 'resp-request',
  words: [
    ...respWords,
    'EVAL',
    'MSET',
    'XREAD',
    'STREAMS',
    'ZUNIONSTORE',
    'MIGRATE',
    'SORT',
    'GET',
    'KEYS',
    'BITFIELD',
  ],
  seeds: () => [
    encodeCommand(['GET', 'key']),
    encodeCommand(['MSET', 'a', '1', 'b', Buffer.from([0, 255])]),
    encodeCommand(['EVAL', 'return 1', '2', 'a', 'b', 'c']),
    encodeCommand(['XREAD', 'COUNT', '2', 'STREAMS', 's', 't', '0', '0']),
    encodeCommand(['SORT', 'l', 'BY', 'w_*', 'GET', '#', 'STORE', 'd']),
    encodeCommand(['ZUNIONSTORE', 'd', '2', 'a', 'b', 'WEIGHTS', '1', '2']),
    encodeCommand(['MIGRATE', 'h', '1', '', '0', '9', 'KEYS', 'a', 'b']),
    Buffer.from('set k "a b\\x41"\r\nPING\r\n*0\r\n'),
  ],
  run(input) {
    const whole = readUntilError((items) => void readRequests(new RequestParser(), input, 0, items))
    const chunked = readUntilError((items) => {
      const parser = new RequestParser()
      let at = 0
      let end = 0
      for (const chunk of chunksOf(input)) {
        end += chunk.length
        at = readRequests(parser, input.subarray(0, end), at, items)
      }
    })
    mustAgree(whole, chunked, 'a request read in chunks is another one')
  },
}

/** All replies of a connection whose bytes arrive in these chunks. */
function readReplies(decoder: ReplyDecoder, chunks: readonly Buffer[]): Read {
  return readUntilError((items) => {
    for (const chunk of chunks) {
      // As plain bytes: a piece of a `Buffer` is another class than what is gathered, and says nothing of the reply.
      decoder.feed(new Uint8Array(chunk))
      for (let reply = decoder.next(); reply !== undefined; reply = decoder.next()) items.push(reply)
    }
    items.push(decoder.isIdle)
  })
}

/** Where replies end, by the scanner. */
function scanReplies(chunks: readonly Buffer[]): Read {
  const scanner = new ReplyScanner()
  let before = 0
  return readUntilError((items) => {
    for (const chunk of chunks) {
      for (let at = 0; at < chunk.length; ) {
        at = scanner.scan(chunk, at)
        if (scanner.isDone) items.push(`${scanner.type} ends at ${before + at}`)
      }
      before += chunk.length
    }
  })
}

export const replyTarget: FuzzTarget = {
  name: 'resp-reply',
  words: respWords,
  seeds: () => [
    encodeReply(['a', 1, null, [true, 'b', Buffer.from([0, 13, 10])]], 3),
    encodeReply(new MapReply([['k', 1]]), 3),
    encodeReply(new MapReply([['k', 1]]), 2),
    Buffer.from('|1\r\n+ttl\r\n:3\r\n$3\r\nabc\r\n>2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n'),
    Buffer.from('$?\r\n;4\r\nabcd\r\n;0\r\n*?\r\n:1\r\n,1.5\r\n.\r\n%?\r\n+a\r\n#t\r\n.\r\n'),
    Buffer.from('(12345678901234567890\r\n=7\r\ntxt:abc\r\n!5\r\nERR x\r\n-ERR y\r\n_\r\n~1\r\n:1\r\n'),
  ],
  run(input) {
    const chunks = chunksOf(input)
    const whole = readReplies(new ReplyDecoder({ bulk: 'copy' }), [input])
    mustAgree(whole, readReplies(new ReplyDecoder({ bulk: 'copy' }), chunks), 'a reply read in chunks is another one')
    readReplies(new ReplyDecoder({ bulk: 'text', attributes: 'keep' }), chunks)
    const scanned = scanReplies([input])
    mustAgree(scanned, scanReplies(chunks), 'a reply scanned in chunks is another one')
    if (whole.error !== undefined || scanned.error !== undefined) return
    const replies = whole.items.length - 1
    if (replies === scanned.items.length) return
    throw new LawBroken(`the decoder reads ${replies} replies where the scanner sees ${scanned.items.length}`)
  },
}
