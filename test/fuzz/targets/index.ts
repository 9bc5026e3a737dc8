import type { FuzzTarget } from '../target.ts'
import { aofTarget, manifestTarget } from './aof.ts'
import { captureTarget, monitorTarget, rdbTarget } from './find.ts'
import { hubHttpTarget } from './http.ts'
import { policyTarget } from './policies.ts'
import { hubPortTarget, idsHttpTarget, idsRespTarget } from './ports.ts'
import { replyTarget, requestTarget } from './resp.ts'
import { regexTarget, ruleTarget } from './rules.ts'
import { redisUrlTarget, rulesFileTarget, settingsTarget, tokensTarget } from './settings.ts'
import { binaryReportTarget, invalidationTarget, sensorTarget, textReportTarget } from './wire.ts'

export { selfCheckTarget } from './self-check.ts'

/** Every parser that a stranger can reach. */
export const targets: readonly FuzzTarget[] = [
  requestTarget,
  replyTarget,
  sensorTarget,
  invalidationTarget,
  binaryReportTarget,
  textReportTarget,
  hubHttpTarget,
  hubPortTarget,
  idsHttpTarget,
  idsRespTarget,
  rdbTarget,
  aofTarget,
  manifestTarget,
  captureTarget,
  monitorTarget,
  policyTarget,
  ruleTarget,
  regexTarget,
  settingsTarget,
  tokensTarget,
  rulesFileTarget,
  redisUrlTarget,
]
