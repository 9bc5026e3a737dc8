/** A JSON Schema of the forms that our OpenAPI document uses. */
export interface AnswerSchema {
  readonly $ref?: string
  readonly anyOf?: readonly AnswerSchema[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly type?: string
  readonly properties?: Readonly<Record<string, AnswerSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: AnswerSchema
  readonly items?: AnswerSchema
}

/** What of a value its schema does not say, or says otherwise; also fields that it does not name. */
export function schemaProblems(
  schema: AnswerSchema,
  value: unknown,
  types: Readonly<Record<string, AnswerSchema>>,
  place = 'the answer',
): string[] {
  const below = (of: AnswerSchema, part: unknown, name: string) => schemaProblems(of, part, types, `${place}.${name}`)
  if (schema.$ref !== undefined) {
    const name = schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1)
    const type = types[name]
    return type === undefined ? [`${place}: there is no schema ${name}`] : schemaProblems(type, value, types, place)
  }
  if (schema.anyOf !== undefined) {
    const each = schema.anyOf.map((one) => schemaProblems(one, value, types, place))
    // The closest one tells best what is wrong.
    return each.reduce((least, problems) => (problems.length < least.length ? problems : least))
  }
  if ('const' in schema)
    return schema.const === value ? [] : [`${place} is ${String(value)}, not ${String(schema.const)}`]
  if (schema.enum !== undefined)
    return schema.enum.includes(value) ? [] : [`${place} is ${String(value)}, not in its list`]
  if (schema.type === undefined) return []
  if (typeOf(value) !== schema.type) return [`${place} is ${typeOf(value)}, not ${schema.type}`]
  if (schema.type === 'array') {
    const items = schema.items ?? {}
    return (value as unknown[]).flatMap((item, index) => below(items, item, String(index)))
  }
  if (schema.type !== 'object') return []
  const { properties = {}, required = [], additionalProperties } = schema
  const fields = value as Readonly<Record<string, unknown>>
  const missing = required.filter((name) => !(name in fields)).map((name) => `${place}.${name} is missing`)
  const wrong = Object.entries(fields).flatMap(([name, part]) => {
    const type = properties[name] ?? additionalProperties
    return type === undefined ? [`${place}.${name} is not in the schema`] : below(type, part, name)
  })
  return [...missing, ...wrong]
}

function typeOf(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
}
