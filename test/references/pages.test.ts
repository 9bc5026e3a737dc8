import { readFileSync } from 'node:fs'
import { startHub } from '@firebreak/hub'
import { expect, onTestFinished, test } from 'vitest'
import { answerSchemas } from '../../packages/hub/src/http/answer-schemas.ts'
import { readPage, userPages } from '../docs/pages.ts'
import { alertShapeNames } from './alert-examples.ts'
import { answersFile, writtenAnswers } from './answer-schemas.ts'
import { cliPage, writtenCliPage } from './cli-page.ts'
import { eventsPage, writtenEventsPage } from './events-page.ts'
import { metricsPage, writtenMetricsPage } from './metrics-page.ts'

test('the page of commands matches their help (npm run references writes it)', async () => {
  expect(readFileSync(cliPage, 'utf8')).toBe(await writtenCliPage())
})

test('the page of metrics matches running processes (npm run references writes it)', async () => {
  const page = await writtenMetricsPage()
  expect(readFileSync(metricsPage, 'utf8')).toBe(page)
})

test('every metric that alerts, dashboard and guides name is on the page', () => {
  const page = readFileSync(metricsPage, 'utf8')
  const sources = ['deploy/prometheus/alerts.yaml', 'deploy/grafana/firebreak.json', ...userPages()]
  for (const source of sources) {
    for (const [name] of readPage(source).matchAll(/\bfirebreak_\w*[a-z]\b/g)) {
      // A field of FIREBREAK INFO, not a metric.
      if (name === 'firebreak_transport') continue
      const family = name.replace(/_(bucket|sum|count)$/, '')
      expect(page, `${name} in ${source}`).toContain(`\`${family}`)
    }
  }
})

test('every route of the API is on its page, and the page names no other', async () => {
  const hub = await startHub({ logLevel: 'silent' })
  onTestFinished(() => hub.close())
  const { paths } = (await (await fetch(`${hub.url}/openapi.json`)).json()) as { paths: Record<string, object> }
  const known = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const named = new Set<string>()
  for (const line of readPage('docs/reference/api.md').split('\n')) {
    if (!line.startsWith('| `')) continue
    let last = ''
    // `PUT /v1/alarms/{id}/silence`, `DELETE …`: the same path again.
    for (const [, method, path] of line.split(' | ')[0]!.matchAll(/(GET|PUT|POST|DELETE) ([^`?, ]+)/g)) {
      last = path === '…' ? last : path!
      named.add(`${method} ${last}`)
    }
  }
  // Registered outside the document: routes for unauthenticated callers, and those that are not JSON.
  const beside = [
    'GET /livez',
    'GET /metrics',
    'GET /readyz',
    ...['DELETE', 'GET', 'POST'].map((m) => `${m} /v1/session`),
  ]
  expect([...named].sort()).toEqual([...new Set([...known, ...beside])].sort())
})

test('the schemas of the API’s answers are those of their types (npm run references writes them)', async () => {
  expect(readFileSync(answersFile, 'utf8')).toBe(await writtenAnswers())
})

test('the page of events is what their types and a hub’s notices say (npm run references writes it)', () => {
  const page = readFileSync(eventsPage, 'utf8')
  expect(page).toBe(writtenEventsPage())
  // No kind without a word about it, and no shape without an example.
  const { properties } = answerSchemas.types['HistoryEvent'] as { properties: { kind: { enum: string[] } } }
  for (const kind of properties.kind.enum) expect(page).toContain(`| \`${kind}\` |`)
  for (const shape of alertShapeNames) expect(page).toContain(`\`${shape}\`:`)
})
