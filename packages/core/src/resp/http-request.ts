import { isWordAt } from '../commands/name-table.ts'
import type { RequestParser } from './request-parser.ts'
import { RequestError } from './resp-error.ts'

const slash = 0x2f

/**
 * Refuses a request that is a line of HTTP. A page can make a browser send a form to any port; read as commands, the
 * lines of its body would be carried out. As in Redis, `POST` and `Host:` end the connection however they are written.
 * A line that ends in `HTTP/1.1` does too: a page whose host name was made to resolve to this address may use `DEL` as
 * a method.
 */
export function refuseHttp(parser: RequestParser, isInline: boolean): void {
  if (isHttpName(parser) || (isInline && isRequestLine(parser))) {
    throw new RequestError('this port speaks RESP, not HTTP')
  }
}

function isHttpName(parser: RequestParser): boolean {
  return isArgument(parser, 0, 'POST') || isArgument(parser, 0, 'HOST:')
}

function isRequestLine(parser: RequestParser): boolean {
  if (parser.length !== 3) return false
  const start = parser.startOf(2)
  return (
    parser.endOf(2) > start + 5 && parser.bytes[start + 4] === slash && isWordAt(parser.bytes, start, start + 4, 'HTTP')
  )
}

function isArgument(parser: RequestParser, index: number, word: string): boolean {
  return isWordAt(parser.bytes, parser.startOf(index), parser.endOf(index), word)
}
