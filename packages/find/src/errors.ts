import { FirebreakError } from '@firebreak/core'

/** A dump cannot be read any further; `offset` is the byte where reading stopped. */
export class RdbError extends FirebreakError {
  readonly offset: number

  constructor(
    code: 'FB_RDB_CORRUPT' | 'FB_RDB_TRUNCATED' | 'FB_RDB_CHECKSUM' | 'FB_RDB_UNSUPPORTED',
    message: string,
    offset: number,
  ) {
    super(code, `RDB at byte ${offset}: ${message}`)
    this.offset = offset
  }
}

/** A capture file cannot be read any further; `offset` is the byte where reading stopped. */
export class CaptureFormatError extends FirebreakError {
  readonly offset: number

  constructor(message: string, offset: number) {
    super('FB_CAPTURE_FORMAT', `capture at byte ${offset}: ${message}`)
    this.offset = offset
  }
}

/** A finder cannot do what was asked on this server; the message says what to do instead. */
export class FindError extends FirebreakError {}
