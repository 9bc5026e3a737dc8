/** The bytes that RESP is made of: the first byte of each type, and the line end. */
export const marker = {
  simple: 0x2b, // +
  error: 0x2d, // -
  integer: 0x3a, // :
  bulk: 0x24, // $
  array: 0x2a, // *
  null: 0x5f, // _
  boolean: 0x23, // #
  double: 0x2c, // ,
  bigNumber: 0x28, // (
  blobError: 0x21, // !
  verbatim: 0x3d, // =
  map: 0x25, // %
  set: 0x7e, // ~
  push: 0x3e, // >
  attribute: 0x7c, // |
  streamPart: 0x3b, // ;
  streamEnd: 0x2e, // .
  streamed: 0x3f, // ? in place of a length
} as const

export const carriageReturn = 0x0d
export const lineFeed = 0x0a
