import type { CallParameters } from '@firebreak/limits/policy'
import type { FastifyRequest } from 'fastify'

/** A call that cannot be parsed is the caller's mistake, whatever the store does. */
export class MalformedCallError extends Error {
  readonly statusCode = 400
}

/** The parameters of a call, from its query and its body. */
export function parametersOf(request: FastifyRequest): CallParameters {
  const { query, body } = request
  if (body === null || body === undefined) return textsOf(query as object)
  if (typeof body !== 'object' || Array.isArray(body))
    throw new MalformedCallError('a call must be an object of parameters')
  return textsOf(query as object, body)
}

/** Parameters as strings, each given once over all sources; without a prototype, because callers choose the names. */
export function textsOf(...sources: readonly object[]): CallParameters {
  const texts: Record<string, string> = Object.create(null)
  for (const source of sources) {
    for (const [name, value] of Object.entries(source)) {
      if (value === null || value === undefined) continue
      const text = textOfOne(name, value)
      // We must not guess which of two was meant: one may be over its limit and the other not.
      if (texts[name] !== undefined && texts[name] !== text) throw twice(name)
      texts[name] = text
    }
  }
  return texts
}

function textOfOne(name: string, value: unknown): string {
  if (Array.isArray(value)) throw twice(name)
  if (typeof value === 'object') throw new MalformedCallError(`the parameter ${name} is an object; it must be one text`)
  return String(value)
}

function twice(name: string): MalformedCallError {
  return new MalformedCallError(`the parameter ${name} is given more than once`)
}

/** The fields of a form; a repeated one is a list, as in a query. */
export function formOf(form: URLSearchParams): Record<string, string | string[]> {
  const fields: Record<string, string | string[]> = Object.create(null)
  for (const name of new Set(form.keys())) {
    const values = form.getAll(name)
    fields[name] = values.length === 1 ? values[0]! : values
  }
  return fields
}

/** Whether a call counts what it asks about; any other word would silently make a limit that never counts. */
export function writesThrough({ _writeThrough: text = 'no' }: CallParameters): boolean {
  if (text === 'yes' || text === 'no' || text === '') return text === 'yes'
  throw new MalformedCallError(`_writeThrough is ${JSON.stringify(text)}; it must be yes or no`)
}

/** The text of a body that is a policy; the server has already parsed JSON. */
export function textOf({ body }: FastifyRequest): string {
  if (body === null || body === undefined) throw new MalformedCallError('the body is empty; it must be a policy')
  return typeof body === 'string' ? body : JSON.stringify(body)
}
