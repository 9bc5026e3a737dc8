import { limitAlgorithms, limitScopes } from '@firebreak/core'
import type { RuleLevel, StrategyTemplate } from '@firebreak/core/rules'
import { t } from '../text/text.ts'
import { CheckField, ChoiceField, NumberField, TextField } from './fields.tsx'
import {
  calendarUnits,
  hasBurst,
  strategyNames,
  withAuto,
  withField,
  withNewStrategy,
  withoutStrategy,
  withParameter,
  withShare,
  withStrategy,
  withThreshold,
} from './rule-draft.ts'

interface LevelFieldsProps {
  readonly title: string
  readonly level: RuleLevel
  /** Whether it is the only one: a level that is hot by itself stands alone. */
  readonly isOnly: boolean
  readonly onChange: (level: RuleLevel) => void
  readonly onRemove: (() => void) | undefined
}

/** One level of heat, and what is done at it. */
export function LevelFields({ title, level, isOnly, onChange, onRemove }: LevelFieldsProps) {
  const isAuto = level.auto === true
  return (
    <fieldset class="level">
      <legend>
        {title}{' '}
        {onRemove !== undefined && (
          <button type="button" class="plain" onClick={onRemove}>
            {t('Remove')}
          </button>
        )}
      </legend>
      {isOnly && (
        <CheckField
          label={t('by itself: by what the key costs its node')}
          name="auto"
          value={isAuto}
          onChange={(value) => onChange(withAuto(level, value))}
        />
      )}
      {!isAuto && <HeatFields level={level} onChange={onChange} />}
      {level.strategies.map((strategy, at) => (
        <div key={at} class="strategy-fields">
          <ChoiceField
            label={at === 0 ? t('Then') : t('Or, as the hub chooses')}
            name="strategy"
            value={strategy.strategy}
            choices={strategyNames}
            onChange={(name) => onChange(withStrategy(level, at, name))}
          />
          <Parameters of={strategy} onChange={(name, value) => onChange(withParameter(level, at, name, value))} />
          {level.strategies.length > 1 && (
            <button type="button" class="plain" onClick={() => onChange(withoutStrategy(level, at))}>
              {t('Remove')}
            </button>
          )}
        </div>
      ))}
      {level.strategies.length < strategyNames.length && (
        <button type="button" class="plain" onClick={() => onChange(withNewStrategy(level))}>
          {t('+ strategy to choose from')}
        </button>
      )}
    </fieldset>
  )
}

/** From where on a key is hot, by number and by share. */
function HeatFields({ level, onChange }: Pick<LevelFieldsProps, 'level' | 'onChange'>) {
  const isByShareOnly = level.enter === Number.MAX_SAFE_INTEGER
  return (
    <>
      <ChoiceField
        label={t('Measure')}
        name="measure"
        value={level.measure}
        choices={['accesses', 'reads', 'writes', 'bytes']}
        onChange={(measure) => onChange({ ...level, measure })}
      />
      <NumberField
        label={t('Hot from, in the window')}
        name="threshold"
        min={1}
        isOptional={level.enterShare !== undefined}
        value={isByShareOnly ? undefined : level.enter}
        onChange={(enter) => onChange(enter === undefined ? neverByCount(level) : withThreshold(level, enter))}
      />
      <NumberField
        label={t('Cooling below')}
        name="exit"
        min={0}
        isOptional={isByShareOnly}
        value={isByShareOnly ? undefined : level.exit}
        onChange={(exit) => exit !== undefined && onChange({ ...level, exit })}
      />
      <NumberField
        label={t('Or from this share, 0 to 1')}
        name="enterShare"
        min={0.0001}
        max={1}
        isOptional
        value={level.enterShare}
        onChange={(share) => onChange(withShare(level, share))}
      />
      {level.enterShare !== undefined && (
        <>
          <NumberField
            label={t('Share no longer counts below')}
            name="exitShare"
            value={level.exitShare}
            onChange={(value) => onChange(withField(level, 'exitShare', value))}
          />
          <NumberField
            label={t('A share counts from')}
            name="shareMinimum"
            value={level.shareMinimum}
            onChange={(value) => onChange(withField(level, 'shareMinimum', value))}
          />
          <ChoiceField
            label={t('Share of')}
            name="shareOf"
            value={level.shareOf}
            choices={['service', 'node']}
            onChange={(value) => onChange(withField(level, 'shareOf', value))}
          />
        </>
      )}
    </>
  )
}

function neverByCount(level: RuleLevel): RuleLevel {
  return { ...level, enter: Number.MAX_SAFE_INTEGER, exit: Number.MAX_SAFE_INTEGER }
}

interface ParametersProps {
  readonly of: StrategyTemplate
  readonly onChange: (name: string, value: unknown) => void
}

function Parameters({ of: strategy, onChange }: ParametersProps) {
  const number = (label: string, name: string, value: number | undefined, isOptional = false) => (
    <NumberField
      label={label}
      name={`strategy.${name}`}
      value={value}
      isOptional={isOptional}
      onChange={(next) => onChange(name, next)}
    />
  )
  switch (strategy.strategy) {
    case 'LocalCache':
      return (
        <>
          {number(t('Entries per process'), 'cacheSize', strategy.cacheSize)}
          {number(t('Bytes per process'), 'maxBytes', strategy.maxBytes)}
          {number(t('Lifetime of a value in seconds'), 'expireTime', strategy.expireTime)}
          <ChoiceField
            label={t('Eviction policy')}
            name="expireStrategy"
            value={strategy.expireStrategy}
            choices={['S3-FIFO', 'LRU', 'LFU', 'SIEVE']}
            onChange={(value) => onChange('expireStrategy', value)}
          />
          {number(t('Bypass when older than ms'), 'maxStalenessMs', strategy.maxStalenessMs, true)}
          <CheckField
            label={t('drop on change')}
            name="consistent"
            value={strategy.consistent}
            onChange={(value) => onChange('consistent', value)}
          />
        </>
      )
    case 'RedundantKeys':
      return (
        <>
          {number(t('Copies'), 'copyCount', strategy.copyCount)}
          <TextField
            label={t('Name of a copy')}
            name="template"
            value={strategy.template}
            onChange={(value) => onChange('template', value)}
          />
          {number(t('Or copies per node'), 'copiesPerNode', strategy.copiesPerNode, true)}
          {number(t('TTL of a copy up to ms longer'), 'ttlJitterMs', strategy.ttlJitterMs)}
          <ChoiceField
            label={t('A copy lives as long as')}
            name="ttl"
            value={strategy.ttl ?? 'renewed'}
            choices={['renewed', 'key']}
            // The default is not written down: what comes back is what was saved.
            onChange={(value) => onChange('ttl', value === 'renewed' ? undefined : value)}
          />
        </>
      )
    case 'RateLimit':
      return (
        <>
          {number(t('Limit'), 'limit', strategy.limit)}
          {strategy.algorithm !== 'calendarWindow' && number(t('in ms'), 'windowMs', strategy.windowMs)}
          {hasBurst(strategy.algorithm) && number(t('At once'), 'burst', strategy.burst, true)}
          <ChoiceField
            label={t('Algorithm')}
            name="algorithm"
            value={strategy.algorithm}
            choices={limitAlgorithms}
            onChange={(value) => onChange('algorithm', value)}
          />
          {strategy.algorithm === 'calendarWindow' && (
            <>
              <ChoiceField
                label={t('In each')}
                name="unit"
                value={strategy.unit}
                choices={calendarUnits}
                onChange={(value) => onChange('unit', value)}
              />
              <TextField
                label={t('Time zone')}
                name="timeZone"
                value={strategy.timeZone ?? ''}
                onChange={(value) => onChange('timeZone', value)}
              />
            </>
          )}
          <ChoiceField
            label={t('Refused accesses')}
            name="onLimit"
            value={strategy.onLimit}
            choices={['reject', 'wait', 'stale']}
            onChange={(value) => onChange('onLimit', value)}
          />
          <ChoiceField
            label={t('Counted')}
            name="scope"
            value={strategy.scope}
            choices={limitScopes}
            onChange={(value) => onChange('scope', value)}
          />
        </>
      )
    case 'Combine':
      return number(t('Increments per command'), 'maxCombined', strategy.maxCombined)
    case 'Observe':
      return null
  }
}
