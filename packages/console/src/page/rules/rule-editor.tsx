import type { StrategyName } from '@firebreak/core'
import type { KeyPattern, Rule, RuleLevel } from '@firebreak/core/rules'
import {
  draftOf,
  draftOfJson,
  patternKinds,
  patternOf,
  patternValue,
  type RuleDraft,
  strategyNames,
  withLevel,
  withLimit,
  withStrategy,
  withThreshold,
} from './rule-draft.ts'

interface RuleEditorProps {
  readonly draft: RuleDraft
  readonly onChange: (draft: RuleDraft) => void
  readonly onSave: () => void
  readonly onCancel: () => void
}

/** A rule as a form and as JSON, side by side. */
export function RuleEditor({ draft, onChange, onSave, onCancel }: RuleEditorProps) {
  const { rule, json, isNew, problem } = draft
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    onSave()
  }
  return (
    <form class="rule-editor" onSubmit={submit}>
      <h2>{isNew ? 'New rule' : `Edit rule ${rule?.id ?? ''}`}</h2>
      <div class="side-by-side">
        <div class="actions">
          {rule === undefined ? (
            <p class="empty">This rule can be edited as JSON only.</p>
          ) : (
            <Fields rule={rule} isNew={isNew} onChange={(changed) => onChange(draftOf(changed, isNew))} />
          )}
        </div>
        <label>
          As JSON, with every field
          <textarea
            name="json"
            spellcheck={false}
            value={json}
            onInput={(event) => onChange(draftOfJson(event.currentTarget.value, isNew))}
          />
        </label>
      </div>
      {problem !== undefined && <p class="problem">{problem}</p>}
      <p>
        <button type="submit" class="primary">
          Save rule
        </button>{' '}
        {!isNew && (
          <button type="button" onClick={onCancel}>
            Cancel
          </button>
        )}
      </p>
    </form>
  )
}

interface FieldsProps {
  readonly rule: Rule
  readonly isNew: boolean
  readonly onChange: (rule: Rule) => void
}

function Fields({ rule, isNew, onChange }: FieldsProps) {
  const { pattern } = rule
  const setPattern = (kind: KeyPattern['kind'], value: string) => onChange({ ...rule, pattern: patternOf(kind, value) })
  return (
    <>
      <label>
        Name
        <input
          name="id"
          required
          readOnly={!isNew}
          placeholder="product"
          value={rule.id}
          onInput={(event) => onChange({ ...rule, id: event.currentTarget.value })}
        />
      </label>
      <label>
        Keys by
        <select
          name="kind"
          value={pattern.kind}
          onChange={(event) => setPattern(event.currentTarget.value as KeyPattern['kind'], patternValue(pattern))}
        >
          {patternKinds.map((kind) => (
            <option key={kind}>{kind}</option>
          ))}
        </select>
      </label>
      <PatternField pattern={pattern} onChange={(value) => setPattern(pattern.kind, value)} />
      <label>
        Mode
        <select
          name="mode"
          value={rule.mode}
          onChange={(event) => onChange({ ...rule, mode: event.currentTarget.value as Rule['mode'] })}
        >
          <option>on</option>
          <option>shadow</option>
          <option>off</option>
        </select>
      </label>
      <label>
        Window in milliseconds
        <input
          name="windowMs"
          type="number"
          min="1000"
          max="3600000"
          required
          value={rule.windowMs}
          onInput={(event) => onChange({ ...rule, windowMs: Number(event.currentTarget.value) })}
        />
      </label>
      {rule.levels.map((level, index) => (
        <LevelFields
          key={index}
          title={rule.levels.length === 1 ? 'When hot' : `Level ${index + 1}`}
          level={level}
          onChange={(changed) => onChange(withLevel(rule, index, () => changed))}
        />
      ))}
    </>
  )
}

/** Exact keys a line each; any other pattern is one line. */
function PatternField(props: { readonly pattern: KeyPattern; readonly onChange: (value: string) => void }) {
  const { pattern, onChange } = props
  const value = patternValue(pattern)
  if (pattern.kind === 'exact') {
    return (
      <label>
        Keys, one a line
        <textarea
          class="lines"
          name="pattern"
          required
          value={value}
          onInput={(e) => onChange(e.currentTarget.value)}
        />
      </label>
    )
  }
  return (
    <label>
      Pattern
      <input
        name="pattern"
        required
        placeholder="product_"
        value={value}
        onInput={(e) => onChange(e.currentTarget.value)}
      />
    </label>
  )
}

interface LevelFieldsProps {
  readonly title: string
  readonly level: RuleLevel
  readonly onChange: (level: RuleLevel) => void
}

function LevelFields({ title, level, onChange }: LevelFieldsProps) {
  const [strategy] = level.strategies
  const isChoice = level.strategies.length > 1
  return (
    <fieldset>
      <legend>{title}</legend>
      <label>
        {level.measure ?? 'accesses'} in the window
        <input
          name="threshold"
          type="number"
          min="1"
          required
          value={level.enter}
          onInput={(event) => onChange(withThreshold(level, Number(event.currentTarget.value)))}
        />
      </label>
      {isChoice ? (
        <span>the hub chooses: {level.strategies.map((one) => one.strategy).join(' or ')}</span>
      ) : (
        <label>
          Then
          <select
            name="strategy"
            value={strategy?.strategy}
            onChange={(event) => onChange(withStrategy(level, event.currentTarget.value as StrategyName))}
          >
            {strategyNames.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      )}
      {!isChoice && strategy?.strategy === 'RateLimit' && (
        <label>
          Limit in {(strategy.windowMs ?? 1000) / 1000} s
          <input
            name="ruleLimit"
            type="number"
            min="1"
            required
            value={strategy.limit}
            onInput={(event) => onChange(withLimit(level, Number(event.currentTarget.value)))}
          />
        </label>
      )}
    </fieldset>
  )
}
