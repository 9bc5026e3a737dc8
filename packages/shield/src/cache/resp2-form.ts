/** Commands that return members with scores as pairs in RESP3 and as a flat list in RESP2. */
const pairCommands: ReadonlySet<string> = new Set([
  'ZDIFF',
  'ZINTER',
  'ZUNION',
  'ZRANGE',
  'ZRANGEBYSCORE',
  'ZREVRANGE',
  'ZREVRANGEBYSCORE',
])

const [array, bulk, integer, nothing, boolean, double] = [0x2a, 0x24, 0x3a, 0x5f, 0x23, 0x2c]
const [bigNumber, verbatim, map, set, attribute] = [0x28, 0x3d, 0x25, 0x7e, 0x7c]

/**
 * A read command's RESP3 reply as the server would have sent it in RESP2. The texts of doubles are kept unchanged,
 * because a number parsed and printed again may have other digits.
 */
export function resp2Form(commandName: string, reply: Uint8Array): Uint8Array {
  // Only GEOPOS uses a null array for "no such member".
  const noItem = commandName === 'GEOPOS' ? '*-1\r\n' : '$-1\r\n'
  const converter = new Converter(Buffer.from(reply.buffer, reply.byteOffset, reply.length), noItem)
  return converter.whole(pairCommands.has(commandName))
}

class Converter {
  readonly #from: Buffer
  readonly #noItem: string
  readonly #pieces: Buffer[] = []
  #at = 0

  constructor(from: Buffer, noItem: string) {
    this.#from = from
    this.#noItem = noItem
  }

  whole(hasPairs: boolean): Uint8Array {
    const isArray = this.#from[0] === array
    if (hasPairs && isArray) this.#pairs()
    else this.#value()
    return Buffer.concat(this.#pieces)
  }

  /** Flattens an array whose items may be arrays of two. */
  #pairs(): void {
    const count = Number(this.#line().toString('latin1', 1))
    const isPaired = count > 0 && this.#from[this.#at] === array
    this.#text(`*${isPaired ? count * 2 : count}\r\n`)
    for (let index = 0; index < count; index++) {
      if (isPaired) {
        this.#line()
        this.#value()
      }
      this.#value()
    }
  }

  #value(): void {
    const start = this.#at
    const line = this.#line()
    const type = line[0]
    const count = Number(line.toString('latin1', 1))
    switch (type) {
      case nothing:
        this.#text(this.#noItem)
        return
      case boolean:
        this.#text(line[1] === 0x74 ? ':1\r\n' : ':0\r\n')
        return
      case double:
      case bigNumber:
        this.#text(`$${line.length - 1}\r\n${line.toString('latin1', 1)}\r\n`)
        return
      case bulk:
        this.#at += count + 2
        this.#pieces.push(this.#from.subarray(start, this.#at))
        return
      case verbatim: {
        const body = this.#from.subarray(this.#at + 4, this.#at + count + 2)
        this.#at += count + 2
        this.#text(`$${count - 4}\r\n`)
        this.#pieces.push(body)
        return
      }
      case attribute:
        for (let index = 0; index < count * 2; index++) this.#skip()
        this.#value()
        return
      case map:
      case set:
      case array: {
        const items = type === map ? count * 2 : count
        this.#text(`*${items}\r\n`)
        for (let index = 0; index < items; index++) this.#value()
        return
      }
      default:
        this.#pieces.push(this.#from.subarray(start, this.#at))
        if (type !== integer) return
    }
  }

  #skip(): void {
    const kept = this.#pieces.length
    this.#value()
    this.#pieces.length = kept
  }

  /** The current line without its end. */
  #line(): Buffer {
    const end = this.#from.indexOf(0x0d, this.#at)
    const line = this.#from.subarray(this.#at, end)
    this.#at = end + 2
    return line
  }

  #text(text: string): void {
    this.#pieces.push(Buffer.from(text, 'latin1'))
  }
}
