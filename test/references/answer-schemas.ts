import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startHub } from '@firebreak/hub'
import { type Schema, TypeSchemas } from './type-schemas.ts'

/** The JSON Schemas of the API's answers, written from the types that the hub, the console and the CLI share. */
export const answersFile = new URL('../../packages/hub/src/http/answer-schemas.ts', import.meta.url)

const root = fileURLToPath(new URL('../..', import.meta.url))

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: Responses }>>>>
}
type Responses = Readonly<Record<string, { readonly description: string }>>

/** Each answer, as its route names it: a TypeScript type. */
async function answersOfRoutes(): Promise<string[]> {
  const hub = await startHub({ logLevel: 'silent' })
  try {
    const { paths } = (await (await fetch(`${hub.url}/openapi.json`)).json()) as OpenApi
    const answers = Object.values(paths)
      .flatMap((methods) => Object.values(methods))
      .flatMap(({ responses }) => Object.entries(responses))
      .filter(([status]) => status !== 'default' && status !== '204')
    return [...new Set(answers.map(([, { description }]) => description))].sort()
  } finally {
    await hub.close()
  }
}

function sources(): string[] {
  return ['core', 'hub'].flatMap((room) => {
    const folder = join(root, 'packages', room, 'src')
    return readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.ts$/.test(file) && !file.endsWith('.test.ts'))
      .map((file) => readFileSync(join(folder, file), 'utf8'))
  })
}

/** The file as it should be. */
export async function writtenAnswers(): Promise<string> {
  const types = new TypeSchemas(sources())
  const answers: Record<string, Schema> = {}
  for (const answer of await answersOfRoutes()) answers[answer] = types.of(answer)
  const text = `// Written by \`npm run references\` from the types that the routes name.

/** The JSON Schemas of the API's answers, as their routes name them, and of the types in them. */
export const answerSchemas: {
  readonly answers: Readonly<Record<string, object>>
  readonly types: Readonly<Record<string, object>>
} = ${JSON.stringify({ answers, types: types.schemas })}
`
  const biome = join(root, 'node_modules/.bin/biome')
  const path = fileURLToPath(answersFile)
  return execFileSync(biome, ['format', `--stdin-file-path=${path}`], { input: text, encoding: 'utf8', cwd: root })
}
