import type { AlertRouteView } from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import type { Locator } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openStage, type Stage } from './stage.ts'

/**
 * Every option of a form can be saved and comes back unchanged. The fields are taken from the page, not from a list here:
 * whoever adds one, or an option to one, has it walked.
 */
vi.setConfig({ testTimeout: 300_000 })

let stage: Stage
beforeAll(async () => {
  stage = await openStage({ reducedMotion: 'reduce' })
})
afterAll(() => stage?.close())

/** What is read of a field of a form. */
interface Field {
  readonly name: string
  readonly type: string
  readonly value: string
  readonly checked?: boolean
  readonly options?: Iterable<{ readonly value: string }>
}

/** What a form shows, field by field in their order. */
function shownIn(form: Locator): Promise<string[]> {
  return form
    .locator('input, select, textarea:not([name=json])')
    .evaluateAll((fields) =>
      (fields as unknown as Field[]).map(
        ({ name, type, value, checked }) => `${name} = ${type === 'checkbox' ? checked : value}`,
      ),
    )
}

/** The options of each select of a form, by its name. */
function optionsIn(form: Locator): Promise<[name: string, options: string[]][]> {
  return form
    .locator('select')
    .evaluateAll((selects) =>
      (selects as unknown as Field[]).map(({ name, options }) => [name, [...options!].map(({ value }) => value)]),
    )
}

/** Sets each select to an option that was not chosen before, where one is left; one may bring others, which are set as well. */
async function choose(form: Locator, seen: Set<string>, except: readonly string[] = []): Promise<void> {
  for (let at = 0; at < (await optionsIn(form)).length; at++) {
    const [name, options] = (await optionsIn(form))[at]!
    if (except.includes(name)) continue
    const option = options.find((one) => !seen.has(`${name} ${one}`)) ?? options.at(-1)!
    await form.locator('select').nth(at).selectOption(option)
    seen.add(`${name} ${option}`)
  }
}

/** Numbers that differ from one another and from what was there, within what the field takes. */
async function fillNumbers(form: Locator, turn: number): Promise<void> {
  const fields = form.locator('input[type=number]')
  for (let at = 0; at < (await fields.count()); at++) {
    const field = fields.nth(at)
    const name = await field.getAttribute('name')
    await field.fill(numberFor(name ?? '', at, turn))
  }
}

function numberFor(name: string, at: number, turn: number): string {
  switch (name) {
    case 'enterShare':
      return String(0.5 + turn / 100)
    case 'exitShare':
      return String(0.2 + turn / 100)
    case 'threshold':
      return String(5000 + 10 * turn)
    case 'exit':
      return String(3000 + turn)
    case 'rollout':
      return String(10 + turn)
    case 'strategy.copiesPerNode':
      return String(1 + (turn % 3))
    case 'strategy.copyCount':
      return String(3 + turn)
    default:
      return String(2000 + 17 * at + turn)
  }
}

test('rules: every option of every field of the form is saved, comes back, and is the same when saved again', async () => {
  const { page, at, notice, busy } = stage
  const form = page.locator('.rule-editor')
  const save = () => form.locator('button', { hasText: 'Save rule' }).click()
  const ruleNow = async () => (await busy.api<{ rule: Rule }>('GET', '/v1/rules/walked')).rule
  // A level with all strategies, so that all parameters are there at once.
  const strategies = ['LocalCache', 'RedundantKeys', 'RateLimit', 'Combine', 'Observe']
  const whole = strategies.map((strategy) => (strategy === 'RateLimit' ? { strategy, limit: 70 } : strategy))
  const levels = [{ threshold: 5000, exit: 3000, enterShare: 0.5, strategies: whole }]
  await busy.api('PUT', '/v1/rules/walked', { prefix: 'w:', levels, rollout: 10, mode: 'off', serviceId: 'nobody' })
  const patterns: Readonly<Record<string, string>> = {
    prefix: 'walk:',
    exact: 'one\ntwo words\n第三',
    suffix: ':walk',
    glob: 'w?lk:*',
    regex: '^walk:[0-9]+$',
  }
  const seen = new Set<string>()
  const wanted = new Set<string>()
  const isLeft = () => wanted.size === 0 || [...wanted].some((option) => !seen.has(option))
  for (let turn = 0; isLeft() && turn < 20; turn++) {
    await at('#/rules?edit=walked')
    await form.locator('[name=until]').waitFor()
    await choose(form, seen, ['strategy'])
    // Numbers have no options: twice is enough, to other ones each time.
    if (turn < 2) await fillNumbers(form, turn)
    await form.locator('[name=pattern]').fill(patterns[await form.locator('[name=kind]').inputValue()]!)
    await form.locator('[name=except]').fill(turn % 2 === 0 ? `not${turn}:*\n*:no` : '')
    await form.locator('[name=redisClusterId]').fill(turn % 2 === 0 ? '*' : 'main')
    // Services without a process: nobody has part in the roll-out, so that the hub neither raises nor stops it.
    await form.locator('[name=serviceId]').fill(turn % 2 === 0 ? 'nobody' : 'nobody else')
    await form.locator('[name=rolloutSteps]').fill(turn % 2 === 0 ? '30, 70, 100' : '')
    await form.locator('[name=until]').fill(turn % 2 === 0 ? `2099-01-${turn + 10}T03:04:05` : '')
    await form.locator('[name=template]').fill(`{key}:copy${turn}:{n}`)
    for (const zone of await form.locator('[name=timeZone]').all()) await zone.fill('Asia/Shanghai')
    for (const check of await form.locator('input[name=consistent]').all()) await check.setChecked(turn % 2 === 1)
    for (const [name, options] of await optionsIn(form))
      if (name !== 'strategy') for (const one of options) wanted.add(`${name} ${one}`)
    const shown = await shownIn(form)
    const written = JSON.parse(await form.locator('textarea[name=json]').inputValue()) as Rule
    await save()
    await notice('Rule walked saved').last().waitFor()
    await form.waitFor({ state: 'detached' })
    const saved = await ruleNow()
    expect(saved, `turn ${turn}`).toEqual(written)
    await at('#/rules?edit=walked')
    await form.locator('[name=until]').waitFor()
    expect(await shownIn(form), `turn ${turn}`).toEqual(shown)
    if (turn < 3) await save()
    else await at('#/rules')
    await form.waitFor({ state: 'detached' })
    expect(await ruleNow(), `turn ${turn}`).toEqual(saved)
  }
  // Which strategies a level has is chosen on a level of its own.
  for (const strategy of strategies) {
    await busy.api('PUT', '/v1/rules/walked', { prefix: 'w:', threshold: 50, strategy: strategies.at(-1) })
    await at('#/rules?edit=walked')
    await form.locator('[name=strategy]').selectOption(strategy)
    const written = JSON.parse(await form.locator('textarea[name=json]').inputValue()) as Rule
    await save()
    await form.waitFor({ state: 'detached' })
    expect(await ruleNow()).toEqual(written)
    expect((await ruleNow()).levels[0]!.strategies.map((one) => one.strategy)).toEqual([strategy])
  }
  await busy.api('DELETE', '/v1/rules/walked')
  expect([...wanted].filter((option) => !seen.has(option))).toEqual([])
  // 5 kinds, 3 modes, 4 measures, 2 shares, 4 ways of a full cache, 2 lives of a copy, 9 algorithms, 4 calendars,
  // 3 fates and 5 scopes at least: a walk that finds no fields proves nothing.
  expect(seen.size).toBeGreaterThanOrEqual(41)
})

test('routes of alarms: every shape and severity is saved, comes back, and is the same when saved again', async () => {
  const { page, at, busy, section } = stage
  const form = page.locator('dialog form')
  const routeNow = async (name: string) =>
    (await busy.api<{ routes: AlertRouteView[] }>('GET', '/v1/alert-routes')).routes.find((one) => one.name === name)
  const seen = new Set<string>()
  const wanted = new Set<string>()
  await at('#/alerts')
  for (let turn = 0; turn < 6; turn++) {
    const name = `walk-${turn}`
    await page.click('button:text-is("New route")')
    await choose(form, seen)
    for (const [field, options] of await optionsIn(form)) for (const one of options) wanted.add(`${field} ${one}`)
    await form.locator('[name=name]').fill(name)
    await form.locator('[name=url]').fill(`http://127.0.0.1:9/${turn}`)
    await form.locator('[name=secret]').fill(`routing-key-${turn}`)
    await form.locator('[name=alarms]').fill(turn % 2 === 0 ? '' : 'store\nboard')
    await form.locator('[name=isEnabled]').setChecked(turn % 2 === 0)
    const shown = await shownIn(form)
    await form.locator('button', { hasText: 'Save route' }).click()
    await form.waitFor({ state: 'detached' })
    const saved = await routeNow(name)
    const field = (of: string) => shown.find((line) => line.startsWith(`${of} = `))?.slice(of.length + 3)
    expect(saved).toMatchObject({
      shape: field('shape'),
      severity: field('severity'),
      isEnabled: turn % 2 === 0,
      alarms: turn % 2 === 0 ? [] : ['store', 'board'],
    })
    await section('Routes').locator('tr', { hasText: name }).locator('button', { hasText: 'Edit' }).click()
    // Addresses and secrets are not shown again.
    const secrets = /^(url|secret) = /
    expect((await shownIn(form)).filter((line) => !secrets.test(line))).toEqual(
      shown.filter((line) => !secrets.test(line)),
    )
    await form.locator('button', { hasText: 'Save route' }).click()
    await form.waitFor({ state: 'detached' })
    expect(await routeNow(name)).toEqual(saved)
    await busy.api('DELETE', `/v1/alert-routes/${name}`)
  }
  expect([...wanted].filter((option) => !seen.has(option))).toEqual([])
  expect(seen.size).toBeGreaterThanOrEqual(8)
})

test('acts on a key: every kind with every end and every parameter is put in force as it was chosen', async () => {
  const { page, at, busy } = stage
  const preview = page.locator('.preview')
  const ruleNow = async () =>
    (await busy.api<{ rules: Rule[] }>('GET', '/v1/rules')).rules.find(({ priority }) => priority === 1_000_000)
  await at('#/key/main/feed%253A102')
  const kinds = page.locator('.key-actions .choices button')
  await kinds.first().waitFor()
  const strategyOf = { Limit: 'RateLimit', Cache: 'LocalCache', Copy: 'RedundantKeys', Ignore: 'Observe' } as const
  for (const [kind, strategy] of Object.entries(strategyOf)) {
    const seen = new Set<string>()
    // Those without parameters of their own have the same ends.
    for (let turn = 0; turn < (kind === 'Limit' || kind === 'Copy' ? 3 : 1); turn++) {
      await kinds.filter({ hasText: kind }).click()
      await choose(preview, seen)
      const fields = await optionsIn(preview)
      expect(fields.map(([, options]) => options.length).every((length) => length === 3)).toBe(true)
      for (const number of await preview.locator('input[type=number]').all()) await number.fill(String(3 + turn))
      const onLimit = kind === 'Limit' ? await preview.locator('[name=onLimit]').inputValue() : undefined
      const forMs = Number(await preview.locator('[name=forMs]').inputValue())
      await preview.locator('button', { hasText: `${kind} for` }).click()
      await preview.waitFor({ state: 'detached' })
      const rule = (await ruleNow())!
      const parameters = { Limit: { limit: 3 + turn, onLimit }, Copy: { copyCount: 3 + turn } }[kind]
      expect(rule.levels[0]!.strategies).toMatchObject([{ strategy, ...parameters }])
      expect(Math.abs(rule.until! - Date.now() - forMs)).toBeLessThan(60_000)
      await page.locator('.in-force button', { hasText: 'Undo' }).click()
      await page.locator('.in-force').waitFor({ state: 'detached' })
      expect(await ruleNow()).toBeUndefined()
    }
  }
})
