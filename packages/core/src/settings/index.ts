// `@firebreak/core/settings`: Tables of settings: what flags, variables, files, help and schema are made of.
export {
  settingsHelp,
  settingsReference,
  settingsSchema,
} from './describe-settings.ts'
export { otlpSettings } from './otlp-settings.ts'
export {
  type ResolvedSetting,
  type ResolvedSettings,
  resolveSettings,
  type SettingInput,
  type SettingSource,
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
