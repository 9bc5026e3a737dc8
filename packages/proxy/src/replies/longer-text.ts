/** A reply of one text (bulk or verbatim) with more text behind it. */
export function longerText(reply: Buffer, more: string): Buffer {
  const bodyStart = reply.indexOf(0x0a) + 1
  const body = reply.subarray(bodyStart, reply.length - 2)
  const added = Buffer.from(more, 'latin1')
  const head = Buffer.from(`${String.fromCharCode(reply[0]!)}${body.length + added.length}\r\n`)
  return Buffer.concat([head, body, added, Buffer.from('\r\n')])
}
