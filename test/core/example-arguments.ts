/** An argument of a command as COMMAND DOCS describes it. */
export interface ArgumentDoc {
  readonly name: string
  readonly type: string
  readonly token?: string
  readonly flags?: readonly string[]
  readonly arguments?: readonly ArgumentDoc[]
}

/** Words that could confuse a parser of keys when they are a key or a value. */
const trickyWords = ['store', 'KEYS', 'streams', 'GET', 'by', 'limit', 'AUTH', '', '1', 'count', 'BLOCK']

/**
 * Makes argument lists that a command's documentation allows: every optional part there or not, every alternative,
 * lists of one to three. The same seed makes the same lists.
 */
export class ExampleArguments {
  #state: number
  #keys = 0

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** Arguments behind the command's name. `isTricky`: some values are words that mean something elsewhere. */
  make(docs: readonly ArgumentDoc[], isTricky: boolean): string[] {
    return fillCounts(docs.flatMap((doc) => this.#argument(doc, isTricky)))
  }

  #random(below: number): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0
    return Math.floor((this.#state / 2 ** 32) * below)
  }

  #argument(doc: ArgumentDoc, isTricky: boolean): string[] {
    const flags = doc.flags ?? []
    if (flags.includes('optional') && this.#random(2) === 0) return []
    const times = flags.includes('multiple') ? 1 + this.#random(3) : 1
    const parts: string[] = []
    for (let turn = 0; turn < times; turn++) {
      if (doc.token !== undefined && doc.type !== 'pure-token' && (turn === 0 || flags.includes('multiple_token'))) {
        parts.push(this.#random(2) === 0 ? doc.token : doc.token.toLowerCase())
      }
      parts.push(...this.#value(doc, isTricky))
    }
    return parts
  }

  #value(doc: ArgumentDoc, isTricky: boolean): string[] {
    const children = doc.arguments ?? []
    switch (doc.type) {
      case 'block':
        return children.flatMap((child) => this.#argument(child, isTricky))
      case 'oneof':
        return this.#argument(children[this.#random(children.length)]!, isTricky)
      case 'pure-token':
        return [doc.token!]
      case 'key':
        return [`${keyMark}key:${++this.#keys}`]
      case 'integer':
        return [doc.name === 'numkeys' ? countMark : String(this.#random(20))]
      case 'double':
        return [String(this.#random(100) / 4)]
      case 'unix-time':
        return ['1900000000']
      default:
        return [
          isTricky && this.#random(3) === 0 ? trickyWords[this.#random(trickyWords.length)]! : `text${this.#keys}`,
        ]
    }
  }
}

// While a list is made: which items are keys, and where their number goes.
const keyMark = '\0key\0'
const countMark = '\0count\0'

/** Fills in the number of keys that directly follow a count. */
function fillCounts(parts: readonly string[]): string[] {
  return parts.map((part, index) => {
    if (part !== countMark) return part.replace(keyMark, '')
    let end = index + 1
    while (parts[end]?.startsWith(keyMark)) end++
    return String(end - index - 1)
  })
}
