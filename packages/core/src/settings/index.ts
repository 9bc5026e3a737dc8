// `@firebreak/core/settings`: tables of settings, the source of flags, variables, files, help and schema.

export { Retry } from '../retry/retry.ts'
export {
  describePolicy,
  parseRetryLines,
  type RetryChoices,
  type RetryEnd,
  type RetryOptions,
  type RetryPolicy,
  type RetryStep,
  type RetrySteps,
  resolveRetry,
} from '../retry/retry-policy.ts'
export {
  settingsHelp,
  settingsReference,
  settingsSchema,
} from './describe-settings.ts'
export { otlpSettings } from './otlp-settings.ts'
export { portBounds, portSettings } from './port-settings.ts'
export { redactionSettings } from './redaction-settings.ts'
export {
  type ResolvedSetting,
  type ResolvedSettings,
  resolveSettings,
  type SettingInput,
  type SettingSource,
  secretFlagWarning,
} from './resolve-settings.ts'
export {
  choiceOf,
  fileSetting,
  flagOf,
  onOrOff,
  portNumber,
  type Setting,
  type SettingKind,
  type SettingTable,
  text,
  textList,
  variableOf,
  variablesOf,
  wholeFrom,
} from './setting.ts'
