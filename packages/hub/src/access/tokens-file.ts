import { readFileSync } from 'node:fs'
import { privateFileProblem } from '@firebreak/core/node'
import { FieldReader } from '@firebreak/core/rules'
import { parse as parseYaml } from 'yaml'
import { HubConfigError } from '../errors.ts'
import { roles } from './credential.ts'
import type { HubTokens } from './fixed-credentials.ts'
import { tokenProblem } from './secrets.ts'

const failure = (field: string, message: string) => new HubConfigError(field, message)

/**
 * Tokens from a file: `apps: [{name, token, services, clusters, maxProcesses}]` and `people: [{name, role, token}]`;
 * each may have a `certificate` in addition to or instead of its token. It must be readable only by its owner and
 * group.
 */
export function readTokens(path: string): HubTokens {
  const reader = new FieldReader(readYaml(path), '', failure, 'an object with apps and people', true)
  const items = <Item>(field: string, read: (fields: FieldReader) => Item): Item[] =>
    (reader.list(field) ?? []).map((item, index) => {
      const fields = new FieldReader(item, `${field}[${index}]`, failure, 'an object', true)
      const result = read(fields)
      fields.end()
      return result
    })
  const apps = items('apps', (fields) => {
    const services = patterns(fields, 'services')
    const clusters = patterns(fields, 'clusters')
    const maxProcesses = fields.raw('maxProcesses')
    if (maxProcesses !== undefined && !(Number.isInteger(maxProcesses) && Number(maxProcesses) > 0)) {
      throw failure(fields.at('maxProcesses'), `${fields.at('maxProcesses')} must be a whole number above 0`)
    }
    const bound = maxProcesses === undefined ? {} : { maxProcesses: Number(maxProcesses) }
    return { ...identity(fields), ...(services && { services }), ...(clusters && { clusters }), ...bound }
  })
  const people = items('people', (fields) => {
    const role = fields.choice('role', roles, undefined)
    if (role === undefined) throw missing(fields, 'role', ': viewer, operator or admin')
    return { ...identity(fields), role }
  })
  reader.end()
  // It may be half-written or emptied by mistake: a hub that followed it would let everyone in.
  if (apps.length + people.length === 0) {
    throw failure('tokensFile', `tokensFile: ${path} names nobody; a hub without tokens must not have a tokensFile`)
  }
  return { apps, people }
}

function identity(fields: FieldReader) {
  const name = fields.text('name', undefined)
  const token = fields.text('token', undefined)
  const certificate = fields.text('certificate', undefined)
  if (name === undefined) throw missing(fields, 'name')
  // The value itself must not be in the message.
  const problem = token === undefined ? undefined : tokenProblem(token)
  if (problem !== undefined) throw failure(fields.at('token'), `${fields.at('token')} ${problem}`)
  return { name, ...(token !== undefined && { token }), ...(certificate !== undefined && { certificate }) }
}

function patterns(fields: FieldReader, field: string): string[] | undefined {
  const list = fields.list(field)
  if (list === undefined) return undefined
  if (list.length > 0 && list.every((item) => typeof item === 'string' && item !== '')) return list as string[]
  throw failure(fields.at(field), `${fields.at(field)} must be a list of names, with * for any characters`)
}

function missing(fields: FieldReader, field: string, choice = ''): HubConfigError {
  return failure(fields.at(field), `${fields.at(field)} is missing${choice}`)
}

function readYaml(path: string): unknown {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
    const problem = privateFileProblem(path)
    if (problem !== undefined) throw failure('tokensFile', `tokensFile: ${problem}`)
    // Its warnings go to stderr and quote the line, including a token.
    return parseYaml(text, { logLevel: 'error' }) as unknown
  } catch (cause) {
    if (cause instanceof HubConfigError) throw cause
    // A parser's message may quote the line, including a token: only its first sentence is shown.
    const reason = (cause as Error).message.split(' at line ')[0]
    throw new HubConfigError('tokensFile', `tokensFile: ${path} cannot be read: ${reason}`)
  }
}
