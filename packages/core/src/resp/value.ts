/**
 * A decoded reply. Types for which JavaScript has a plain value use that value; every other RESP type has a small
 * class, so that no type is lost between decoding and encoding:
 *
 * | RESP                        | here                                                            |
 * | --------------------------- | --------------------------------------------------------------- |
 * | simple string               | `string`                                                        |
 * | bulk (blob) string          | `Uint8Array`, or `string` from a decoder with `bulk: 'text'`    |
 * | integer                     | `number`, or `bigint` where a number would not be exact         |
 * | array                       | array                                                           |
 * | null, null bulk, null array | `null`                                                          |
 * | boolean                     | `boolean`                                                       |
 * | error, blob error           | `ErrorReply`                                                    |
 * | double                      | `Double`                                                        |
 * | big number                  | `BigNumber`                                                     |
 * | verbatim string             | `Verbatim`                                                      |
 * | map, set, push              | `MapReply`, `SetReply`, `PushReply`                             |
 * | attribute                   | dropped, or `Attributed` from a decoder with `attributes: 'keep'` |
 */
export type RespValue =
  | string
  | Uint8Array
  | number
  | bigint
  | boolean
  | null
  | readonly RespValue[]
  | ErrorReply
  | Double
  | BigNumber
  | Verbatim
  | MapReply
  | SetReply
  | PushReply
  | Attributed

/** An error reply. It is a value and not an `Error`: most are never thrown, and a stack trace is expensive. */
export class ErrorReply {
  /** The whole sentence, such as `WRONGTYPE Operation against …`. */
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  /** The first word, such as `WRONGTYPE`, `MOVED` or `ERR`. */
  get kind(): string {
    const space = this.text.indexOf(' ')
    return space < 0 ? this.text : this.text.slice(0, space)
  }
}

/** A RESP3 double, distinct from an integer of the same value. */
export class Double {
  readonly value: number

  constructor(value: number) {
    this.value = value
  }

  valueOf(): number {
    return this.value
  }
}

/** A RESP3 big number, distinct from an integer of the same value. */
export class BigNumber {
  readonly value: bigint

  constructor(value: bigint) {
    this.value = value
  }

  valueOf(): bigint {
    return this.value
  }
}

/** A RESP3 verbatim string: text with a format of three ASCII letters, such as `txt` or `mkd`. */
export class Verbatim {
  readonly format: string
  readonly bytes: Uint8Array

  constructor(format: string, bytes: Uint8Array) {
    this.format = format
    this.bytes = bytes
  }
}

/** A RESP3 map. Its keys may be any value, so it is kept as it arrived: key, value, key, value. */
export class MapReply {
  readonly items: readonly RespValue[]

  constructor(items: readonly RespValue[]) {
    this.items = items
  }
}

/** A RESP3 set, in order of arrival. */
export class SetReply {
  readonly items: readonly RespValue[]

  constructor(items: readonly RespValue[]) {
    this.items = items
  }
}

/**
 * A RESP3 push: out of band, not an answer to a request. Its first item names its kind, such as `invalidate` or
 * `message`.
 */
export class PushReply {
  readonly items: readonly RespValue[]

  constructor(items: readonly RespValue[]) {
    this.items = items
  }
}

/** A value with the attributes that the server sent before it. */
export class Attributed {
  readonly attributes: MapReply
  readonly value: RespValue

  constructor(attributes: MapReply, value: RespValue) {
    this.attributes = attributes
    this.value = value
  }
}
