import { connect } from 'node:net'
import { RequestError, RequestParser } from '@firebreak/core/resp'
import { type RedisServer, startRedis } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})

afterAll(() => server.stop())

/** The server's whole answer to these bytes until it closes the connection, at the latest because of QUIT. */
function answerOf(bytes: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(server.port, '127.0.0.1')
    const answer: Buffer[] = []
    socket.on('data', (chunk) => answer.push(chunk))
    socket.on('close', () => resolve(Buffer.concat(answer).toString('latin1')))
    socket.on('error', reject)
    socket.write(bytes)
  })
}

/** The answer of a server that only knows ECHO and QUIT, by our parser. */
function ourAnswer(bytes: Buffer): string {
  const parser = new RequestParser()
  let answer = ''
  try {
    for (let at = 0; at < bytes.length; ) {
      const next = parser.parse(bytes, at, bytes.length)
      if (next === 0) return `${answer}(waits)`
      at = next
      if (parser.length === 0) continue
      const [name, ...args] = Array.from({ length: parser.length }, (_, index) =>
        Buffer.from(parser.bytes.subarray(parser.startOf(index), parser.endOf(index))).toString('latin1'),
      )
      if (name?.toUpperCase() === 'QUIT') return `${answer}+OK\r\n`
      answer += `$${args[0]!.length}\r\n${args[0]}\r\n`
    }
    return `${answer}(waits)`
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    return `${answer}-${error.reply}\r\n`
  }
}

test.each([
  '*2\r\n$4\r\nECHO\r\n$3\r\na\r\n\r\n',
  'ECHO hello\r\n',
  'ECHO hello\n',
  '   ECHO    hello   \r\n',
  '\r\n\r\n*0\r\n*-1\r\n*-5\r\nECHO x\r\n',
  'ECHO "a b"\r\n',
  'ECHO "\\x41\\n\\r\\t\\b\\a\\q\\"\\\\ \\x4 \\xzz"\r\n',
  "ECHO 'a \\' \\n b'\r\n",
  'ECHO ""\r\n',
  "ECHO ''\r\n",
  'ECHO a"b c"\r\n',
  'ECHO a"b"c\r\n',
  'ECHO "a\r\n',
  "ECHO 'a\r\n",
  'ECHO "a"b\r\n',
  "ECHO 'a'b\r\n",
  'ECHO "a\\\r\n',
  'ECHO\ta\v\r\n',
  '*x\r\n',
  '*+1\r\n',
  '*01\r\n',
  '*-01\r\n',
  '*-0\r\n',
  '*\r\n',
  '* 1\r\n',
  '*1 \r\n',
  '*2147483648\r\n',
  '*99999999999999999999\r\n',
  '*1\r\nECHO\r\n',
  '*1\r\n:4\r\n',
  '*2\r\n$4\r\nECHO\r\n$-1\r\n',
  '*2\r\n$4\r\nECHO\r\n$a\r\n',
  '*2\r\n$4\r\nECHO\r\n$\r\n',
  '*2\r\n$4\r\nECHO\r\n$536870913\r\n',
  // The bytes after a bulk string are skipped.
  '*2\r\n$4\r\nECHOxx$1\r\naxx',
  '*2\r\n$4\r\nECHO\r\n$0\r\n\r\n',
])('the parser takes %j as the server does', async (text) => {
  const bytes = Buffer.from(`${text}QUIT\r\n`, 'latin1')
  expect(ourAnswer(bytes)).toBe(await answerOf(bytes))
})

test.each([
  ['an inline request', Buffer.alloc(70_000, 'x')],
  ['a multibulk count', Buffer.from(`*${'1'.repeat(70_000)}`)],
  ['a bulk count', Buffer.from(`*1\r\n$${'1'.repeat(70_000)}`)],
])('%s without an end is refused as by the server', async (_name, bytes) => {
  expect(ourAnswer(bytes)).toBe(await answerOf(bytes))
})
