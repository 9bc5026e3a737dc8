import { isAutoRule, type KeyPattern, patternText, type Rule } from '@firebreak/core/rules'
import { t } from '../text/text.ts'
import { ChoiceField, NumberField, TextField, TimeField } from './fields.tsx'
import { LevelFields } from './level-fields.tsx'
import {
  patternKinds,
  patternOf,
  patternValue,
  stepsIn,
  withField,
  withLevel,
  withNewLevel,
  withoutLevel,
  withRollout,
  withRolloutField,
} from './rule-draft.ts'

interface RuleFieldsProps {
  readonly rule: Rule
  readonly isNew: boolean
  readonly onChange: (rule: Rule) => void
}

const maxLevels = 16

/** Whether a pattern can be edited as text: keys of bytes, or with a line end in them, cannot. */
function isOfLines(pattern: KeyPattern): boolean {
  return pattern.kind !== 'exact' || pattern.keys.every((key) => !/^\0b|\n/.test(key))
}

/** A rule as a form: which keys, how hot, and what then. */
export function RuleFields({ rule, isNew, onChange }: RuleFieldsProps) {
  const { pattern } = rule
  const set = (name: keyof Rule, value: unknown) => onChange(withField(rule, name, value))
  const setPattern = (kind: KeyPattern['kind'], value: string) => set('pattern', patternOf(kind, value))
  return (
    <>
      <fieldset>
        <legend>{t('Which keys')}</legend>
        <TextField label={t('Name')} name="id" value={rule.id} isReadOnly={!isNew} onChange={(id) => set('id', id)} />
        <ChoiceField
          label={t('Keys by')}
          name="kind"
          value={pattern.kind}
          choices={patternKinds}
          onChange={(kind) => setPattern(kind, patternValue(pattern))}
        />
        <TextField
          label={pattern.kind === 'exact' ? t('Keys, one per line') : t('Pattern')}
          name="pattern"
          value={isOfLines(pattern) ? patternValue(pattern) : patternText(pattern)}
          hasLines={pattern.kind === 'exact'}
          // As lines of text they would come back as others: the JSON has them.
          isReadOnly={!isOfLines(pattern)}
          onChange={(value) => setPattern(pattern.kind, value)}
        />
        <TextField
          label={t('Cluster')}
          name="redisClusterId"
          value={rule.redisClusterId}
          onChange={(value) => set('redisClusterId', value)}
        />
        <TextField
          label={t('Service')}
          name="serviceId"
          value={rule.serviceId}
          onChange={(value) => set('serviceId', value)}
        />
        <TextField
          label={t('Except globs, one per line')}
          name="except"
          hasLines
          isOptional
          value={rule.except.map(patternValue).join('\n')}
          isReadOnly={rule.except.some(({ kind }) => kind !== 'glob')}
          onChange={(value) =>
            set(
              'except',
              value
                .split('\n')
                .filter((line) => line !== '')
                .map((line) => patternOf('glob', line)),
            )
          }
        />
      </fieldset>
      <fieldset>
        <legend>{t('How')}</legend>
        <ChoiceField
          label={t('Mode')}
          name="mode"
          value={rule.mode}
          choices={['on', 'shadow', 'off']}
          onChange={(mode) => set('mode', mode)}
        />
        <NumberField
          label={t('Window in ms')}
          name="windowMs"
          min={1000}
          value={rule.windowMs}
          onChange={(value) => set('windowMs', value)}
        />
        <NumberField
          label={t('Hold in ms')}
          name="minHoldMs"
          min={0}
          value={rule.minHoldMs}
          onChange={(value) => set('minHoldMs', value)}
        />
        <NumberField
          label={t('Priority')}
          name="priority"
          value={rule.priority}
          onChange={(value) => set('priority', value)}
        />
        <NumberField
          label={t('Staleness allowed in ms')}
          name="maxStalenessMs"
          isOptional
          value={rule.maxStalenessMs}
          onChange={(value) => set('maxStalenessMs', value)}
        />
        <NumberField
          label={t('For this part of the processes, in %')}
          name="rollout"
          min={0}
          max={100}
          isOptional
          value={rule.rollout?.percent}
          onChange={(percent) => onChange(withRollout(rule, percent))}
        />
        {rule.rollout !== undefined && (
          <>
            <TextField
              label={t('Then by itself, in % with commas')}
              name="rolloutSteps"
              isOptional
              value={rule.rollout.steps?.join(', ') ?? ''}
              onChange={(text) => onChange(withRolloutField(rule, 'steps', stepsIn(text)))}
            />
            <NumberField
              label={t('Each step lasts ms')}
              name="rolloutStepMs"
              min={1000}
              isOptional
              value={rule.rollout.stepMs}
              onChange={(value) => onChange(withRolloutField(rule, 'stepMs', value))}
            />
          </>
        )}
        <TimeField label={t('Deleted at')} name="until" value={rule.until} onChange={(value) => set('until', value)} />
        {rule.rollout?.stopped !== undefined && <p class="problem">{rule.rollout.stopped}</p>}
      </fieldset>
      {rule.levels.map((level, index) => (
        <LevelFields
          key={index}
          title={rule.levels.length === 1 ? t('When hot') : t('Level {n}', { n: index + 1 })}
          level={level}
          isOnly={rule.levels.length === 1}
          onChange={(changed) => onChange(withLevel(rule, index, () => changed))}
          onRemove={rule.levels.length > 1 ? () => onChange(withoutLevel(rule, index)) : undefined}
        />
      ))}
      {rule.levels.length < maxLevels && !isAutoRule(rule) && (
        <button type="button" class="quiet" onClick={() => onChange(withNewLevel(rule))}>
          {t('+ level')}
        </button>
      )}
    </>
  )
}
