import { createServer } from 'node:net'
import { ErrorReply, encodeReply, RequestParser, type RespValue } from '@firebreak/core/resp'

/** Answers commands like servers that are not available here: Redis 8.6, Valkey 9.2. */
export async function startFakeRedis(answer: (args: readonly string[], port: number) => RespValue | undefined) {
  const seen: string[] = []
  const server = createServer((socket) => {
    const parser = new RequestParser()
    let rest = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk])
      let at = 0
      for (let end = parser.parse(rest, at, rest.length); end > 0; end = parser.parse(rest, at, rest.length)) {
        const args = Array.from({ length: parser.length }, (_, index) =>
          Buffer.from(parser.bytes.subarray(parser.startOf(index), parser.endOf(index))).toString(),
        )
        seen.push(args.join(' '))
        const { port } = server.address() as { port: number }
        socket.write(encodeReply(answer(args, port) ?? new ErrorReply(`ERR unknown command '${args[0]}'`), 2))
        at = end
        if (at >= rest.length) break
      }
      rest = rest.subarray(at)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as { port: number }).port,
    seen,
    stop: () => server.close(),
  }
}

/** Text as a server sends it. */
export const bulk = (text: string): Uint8Array => Buffer.from(text)
