/**
 * JSON Schemas of our own TypeScript types, read from their sources: interfaces, aliases, unions, intersections, arrays
 * and the utilities that the API's types use. A declaration of any other form is an error here, not a wrong schema.
 */
export type Schema = Readonly<Record<string, unknown>>

interface Declaration {
  readonly doc: string
  /** Its type, as text; an interface's own members. */
  readonly text: string
  /** Interfaces that it extends. */
  readonly bases: readonly string[]
}

export class TypeSchemas {
  readonly #declarations = new Map<string, Declaration>()
  readonly #constants = new Map<string, readonly string[]>()
  readonly #schemas = new Map<string, Schema>()

  constructor(sources: Iterable<string>) {
    for (const source of sources) this.#read(source)
  }

  /** Every named type that was needed so far. */
  get schemas(): Readonly<Record<string, Schema>> {
    return Object.fromEntries([...this.#schemas].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  /** The schema of a type as it would be written in a source. */
  of(text: string): Schema {
    const parser = new TypeParser(text, this)
    const schema = parser.union()
    parser.end()
    return schema
  }

  /** A reference to a named type. */
  named(name: string): Schema {
    if (!this.#schemas.has(name)) {
      const declaration = this.#declarations.get(name)
      if (declaration === undefined) throw new Error(`the type ${name} is declared nowhere`)
      // Before its parts: a type may contain itself.
      this.#schemas.set(name, {})
      const { doc, text, bases } = declaration
      const whole = merge([...bases.map((base) => this.resolve(this.named(base))), this.of(text)])
      this.#schemas.set(name, { ...(doc !== '' && { description: doc }), ...whole })
    }
    return { $ref: `#/components/schemas/${name}` }
  }

  /** What a reference refers to. */
  resolve(schema: Schema): Schema {
    const ref = schema['$ref'] as string | undefined
    return ref === undefined ? schema : this.resolve(this.#schemas.get(ref.slice(ref.lastIndexOf('/') + 1))!)
  }

  constant(name: string): readonly string[] {
    const values = this.#constants.get(name)
    if (values === undefined) throw new Error(`the list ${name} is declared nowhere`)
    return values
  }

  #read(source: string): void {
    const form =
      /(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n)?export (interface|type|const) (\w+)(?: extends ([\w, ]+))?\s*(?=[={])/g
    for (const match of source.matchAll(form)) {
      const [whole, doc = '', kind, name, bases = ''] = match
      const rest = source.slice(match.index + whole.length)
      if (kind === 'const') {
        const list = /^= \[([^\]]*)\] as const/.exec(rest)?.[1]
        if (list !== undefined)
          this.#constants.set(
            name!,
            [...list.matchAll(/'([^']*)'/g)].map(([, value]) => value!),
          )
        continue
      }
      const text = kind === 'interface' ? rest.slice(0, rest.search(/^\}/m) + 1) : aliasOf(rest)
      const names = bases.split(',').map((base) => base.trim())
      this.#declarations.set(name!, { doc: plain(doc), text, bases: names.filter((base) => base !== '') })
    }
  }
}

/** An alias ends where the next declaration, or a comment of it, begins. */
function aliasOf(rest: string): string {
  const end = rest.search(/\n(?=(?:export|\/\*\*|const|function|class|interface|type)\b|\/\*\*)|\n\n(?! )/)
  return rest.slice(1, end < 0 ? undefined : end)
}

function plain(comment: string): string {
  return comment
    .replace(/^\s*\* ?/gm, '')
    .replace(/\s+/g, ' ')
    .trim()
}

/** Objects as one; what several say of the same field, the last says. */
function merge(schemas: readonly Schema[]): Schema {
  if (schemas.length === 1) return schemas[0]!
  const properties = Object.assign({}, ...schemas.map((schema) => schema['properties'] ?? {}))
  const required = [...new Set(schemas.flatMap((schema) => (schema['required'] as string[] | undefined) ?? []))]
  return { type: 'object', properties, required }
}

const token = /\s*(\/\*\*(?:(?!\*\/)[\s\S])*\*\/|'[^']*'|-?\d[\d_.]*|[\w$]+|[{}()[\]<>|&,;:?=.])/y

class TypeParser {
  readonly #tokens: string[] = []
  readonly #types: TypeSchemas
  #at = 0

  constructor(text: string, types: TypeSchemas) {
    this.#types = types
    token.lastIndex = 0
    const trimmed = text.trim()
    while (token.lastIndex < trimmed.length) {
      const at = token.lastIndex
      const found = token.exec(trimmed)
      if (found === null) throw new Error(`cannot read the type at "${trimmed.slice(at, at + 40)}"`)
      this.#tokens.push(found[1]!)
    }
  }

  end(): void {
    if (this.#at < this.#tokens.length) throw new Error(`unexpected "${this.#tokens[this.#at]}" in a type`)
  }

  union(): Schema {
    this.#take('|')
    const parts = [this.#intersection()]
    while (this.#take('|')) parts.push(this.#intersection())
    if (parts.length === 1) return parts[0]!
    // Literals of a kind are one list.
    const literals = parts.flatMap((part) =>
      'const' in part ? [part['const']] : part['enum'] !== undefined ? (part['enum'] as unknown[]) : [],
    )
    const others = parts.filter((part) => !('const' in part) && part['enum'] === undefined && part['x-absent'] !== true)
    const all = [...(literals.length > 0 ? [{ enum: literals }] : []), ...others]
    return all.length === 1 ? all[0]! : { anyOf: all }
  }

  #intersection(): Schema {
    const parts = [this.#postfix()]
    while (this.#take('&')) parts.push(this.#postfix())
    return parts.length === 1 ? parts[0]! : merge(parts.map((part) => this.#types.resolve(part)))
  }

  #postfix(): Schema {
    if (this.#take('readonly')) return this.#postfix()
    let schema = this.#primary()
    while (this.#take('[')) {
      if (this.#take(']')) {
        schema = { type: 'array', items: schema }
        continue
      }
      const field = literalOf(this.#next())
      this.#expect(']')
      schema = (this.#types.resolve(schema)['properties'] as Record<string, Schema>)[field]!
    }
    return schema
  }

  #primary(): Schema {
    const word = this.#next()
    if (word === '{') return this.#object()
    if (word === '(') {
      if (this.#take('typeof')) {
        const values = this.#types.constant(this.#next())
        for (const one of [')', '[', 'number', ']']) this.#expect(one)
        return { enum: values }
      }
      const inner = this.union()
      this.#expect(')')
      return inner
    }
    if (word.startsWith("'")) return { const: literalOf(word) }
    if (/^-?\d/.test(word)) return { const: Number(word.replaceAll('_', '')) }
    switch (word) {
      case 'string':
      case 'number':
      case 'boolean':
        return { type: word }
      case 'null':
        return { type: 'null' }
      case 'undefined':
        return { 'x-absent': true }
      case 'true':
      case 'false':
        return { const: word === 'true' }
      case 'unknown':
        return {}
    }
    return this.#take('<') ? this.#utility(word) : this.#types.named(word)
  }

  #utility(name: string): Schema {
    const [first, second] = this.#parameters()
    const { resolve } = this.#types
    const whole = resolve.call(this.#types, first!)
    const names = () => (second!['enum'] as string[] | undefined) ?? [second!['const'] as string]
    switch (name) {
      case 'Readonly':
        return first!
      case 'NonNullable':
        return withoutNull(whole)
      case 'Partial':
        return { ...whole, required: [] }
      case 'Record':
        return recordOf(whole, second!)
      case 'Pick':
        return only(whole, (field) => names().includes(field))
      case 'Omit':
        return only(whole, (field) => !names().includes(field))
      case 'Exclude':
        return excluding(whole, second!, this.#types)
    }
    throw new Error(`the utility ${name} is not known here`)
  }

  #parameters(): Schema[] {
    const parameters = [this.union()]
    while (this.#take(',')) parameters.push(this.union())
    this.#expect('>')
    return parameters
  }

  #object(): Schema {
    const properties: Record<string, Schema> = {}
    const required: string[] = []
    let doc = ''
    for (;;) {
      const comment = this.#tokens[this.#at]
      if (comment?.startsWith('/**')) {
        doc = plain(comment.slice(3, -2))
        this.#at++
        continue
      }
      if (this.#take('}')) break
      if (this.#take(',') || this.#take(';')) continue
      const word = this.#next()
      const name = word === 'readonly' && this.#tokens[this.#at] !== ':' ? this.#next() : word
      const isOptional = this.#take('?')
      this.#expect(':')
      const type = this.union()
      // In 3.1 a description may stand beside a reference.
      properties[name] = doc === '' ? type : { description: doc, ...type }
      if (!isOptional) required.push(name)
      doc = ''
    }
    return { type: 'object', properties, required }
  }

  /** The place of the next word that is not a comment. */
  get #place(): number {
    const found = this.#tokens.findIndex((word, index) => index >= this.#at && !word.startsWith('/**'))
    return found < 0 ? this.#tokens.length : found
  }

  #next(): string {
    const place = this.#place
    const next = this.#tokens[place]
    this.#at = place + 1
    if (next === undefined) throw new Error('a type ends too early')
    return next
  }

  #take(word: string): boolean {
    const place = this.#place
    if (this.#tokens[place] !== word) return false
    this.#at = place + 1
    return true
  }

  #expect(word: string): void {
    const next = this.#next()
    if (next !== word) throw new Error(`"${word}" expected in a type, not "${next}"`)
  }
}

function literalOf(word: string): string {
  return word.slice(1, -1)
}

function only(schema: Schema, isWanted: (field: string) => boolean): Schema {
  const properties = Object.entries(schema['properties'] as Record<string, Schema>).filter(([field]) => isWanted(field))
  const required = (schema['required'] as string[]).filter(isWanted)
  return { type: 'object', properties: Object.fromEntries(properties), required }
}

/** With names that are known, an object of those; otherwise of any. */
function recordOf(key: Schema, value: Schema): Schema {
  const names = key['enum'] as string[] | undefined
  if (names === undefined) return { type: 'object', additionalProperties: value }
  return { type: 'object', properties: Object.fromEntries(names.map((name) => [name, value])), required: names }
}

function withoutNull(schema: Schema): Schema {
  const parts = (schema['anyOf'] as Schema[] | undefined)?.filter((part) => part['type'] !== 'null')
  if (parts === undefined) return schema
  return parts.length === 1 ? parts[0]! : { anyOf: parts }
}

/** Without the members of a union that have the other's literal fields. */
function excluding(union: Schema, other: Schema, types: TypeSchemas): Schema {
  const wanted = Object.entries(other['properties'] as Record<string, Schema>)
  const isExcluded = (part: Schema) => {
    const fields = types.resolve(part)['properties'] as Record<string, Schema>
    return wanted.every(([name, { const: value }]) => fields[name]?.['const'] === value)
  }
  return { anyOf: (union['anyOf'] as Schema[]).filter((part) => !isExcluded(part)) }
}
