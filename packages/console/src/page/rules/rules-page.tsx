import type { RulesView } from '@firebreak/core'
import { patternText, type Rule, type RuleLevel } from '@firebreak/core/rules'
import { useState } from 'preact/hooks'
import { call } from '../data/api.ts'
import { useLoaded } from '../data/loaded.ts'
import { count } from '../format/format.ts'

/** The rules, and a form for a simple one; the API takes every field. */
export function RulesPage() {
  const { value, error, reload } = useLoaded<RulesView>('/v1/rules')
  const [problem, setProblem] = useState<string>()
  const change = async (action: () => Promise<unknown>) => {
    try {
      await action()
      setProblem(undefined)
      reload()
    } catch (failure) {
      setProblem((failure as Error).message)
    }
  }
  return (
    <section>
      <h2>Rules</h2>
      {(problem ?? error) && <p class="problem">{problem ?? error}</p>}
      <table>
        <thead>
          <tr>
            <th>Rule</th>
            <th>Keys</th>
            <th>Hot when</th>
            <th>Then</th>
            <th>Mode</th>
            <th />
          </tr>
        </thead>
        <tbody>
          {value?.rules.map((rule) => (
            <tr key={rule.id}>
              <td>
                <code>{rule.id}</code>
              </td>
              <td>
                <code>{patternText(rule.pattern)}</code>
              </td>
              <td>{rule.levels.map((level) => whenText(rule, level)).join('; ')}</td>
              <td>
                {rule.levels.map((level) => level.strategies.map(({ strategy }) => strategy).join(' or ')).join('; ')}
              </td>
              <td>{rule.mode}</td>
              <td>
                <button
                  type="button"
                  class="quiet"
                  onClick={() =>
                    confirm(`Remove rule ${rule.id}?`) &&
                    change(() => call('DELETE', `/v1/rules/${encodeURIComponent(rule.id)}`))
                  }
                >
                  Remove
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {value?.rules.length === 0 && <p class="empty">No rules: nothing will ever be hot. Add one below.</p>}
      <RuleForm onSubmit={(id, rule) => change(() => call('PUT', `/v1/rules/${encodeURIComponent(id)}`, rule))} />
    </section>
  )
}

function RuleForm({ onSubmit }: { readonly onSubmit: (id: string, rule: object) => void }) {
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const fields = new FormData(event.target as HTMLFormElement)
    const text = (name: string) => String(fields.get(name) ?? '')
    onSubmit(text('id'), {
      [text('kind')]: text('pattern'),
      threshold: Number(text('threshold')),
      windowMs: Number(text('windowMs')),
      strategy: text('strategy'),
    })
  }
  return (
    <form class="rule" onSubmit={submit}>
      <label>
        Name <input name="id" required pattern="[\w\-]+" placeholder="product" />
      </label>
      <label>
        Keys by
        <select name="kind">
          <option>prefix</option>
          <option>exact</option>
          <option>suffix</option>
          <option>glob</option>
          <option>regex</option>
        </select>
      </label>
      <label>
        Pattern <input name="pattern" required placeholder="product_" />
      </label>
      <label>
        Accesses <input name="threshold" type="number" min="1" value="1000" required />
      </label>
      <label>
        in milliseconds <input name="windowMs" type="number" min="1000" max="3600000" value="1000" required />
      </label>
      <label>
        Then
        <select name="strategy">
          <option>LocalCache</option>
          <option>RedundantKeys</option>
          <option>RateLimit</option>
          <option>Observe</option>
        </select>
      </label>
      <button type="submit" class="primary">
        Save rule
      </button>
    </form>
  )
}

function whenText(rule: Rule, level: RuleLevel): string {
  return `${count(level.enter)} ${level.measure} in ${rule.windowMs / 1000} s`
}
