import type { ApiError } from '@firebreak/core'
import { expect, onTestFinished, test } from 'vitest'
import { startHub } from '../start-hub.ts'
import { bodyExamples } from './api-examples.ts'

interface Operation {
  readonly requestBody?: { readonly content: Record<string, { readonly example?: unknown }> }
}

test('every body of the API has an example, which the hub takes as it is', async () => {
  const hub = await startHub({ logLevel: 'silent' })
  onTestFinished(() => hub.close())
  const { paths } = (await (await fetch(`${hub.url}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, Operation>>
  }
  const shown: string[] = []
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, { requestBody }] of Object.entries(operations)) {
      if (requestBody === undefined) continue
      const [type, { example }] = Object.entries(requestBody.content)[0]!
      expect(example, `${method} ${path}`).toBeDefined()
      shown.push(`${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}`)
      const response = await fetch(`${hub.url}${path.replace(/\{\w+\}/g, 'x')}`, {
        method: method.toUpperCase(),
        headers: { 'content-type': type },
        body: typeof example === 'string' ? example : JSON.stringify(example),
      })
      // Things that it names may not be there, and its times be long past; its form is right.
      const { code } = response.ok ? {} : ((await response.json()) as Partial<ApiError>)
      expect(code ?? '', `${method} ${path}`).not.toMatch(/INVALID|MALFORMED/)
    }
  }
  expect(shown.sort()).toEqual(Object.keys(bodyExamples).sort())
})
