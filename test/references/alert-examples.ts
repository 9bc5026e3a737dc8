import type { AlertShape } from '@firebreak/core'
import type { AlarmNotice } from '../../packages/hub/src/alarms/alarm-webhooks.ts'
import { alertRequest } from '../../packages/hub/src/alarms/alert-shapes.ts'

export type { AlarmNotice }

export const alertShapeNames: readonly AlertShape[] = ['plain', 'slack', 'dingtalk', 'feishu', 'teams', 'pagerduty']

/** The body that a hub sends for a notice. */
export function exampleRequest(shape: AlertShape, notice: AlarmNotice): unknown {
  const secret = shape === 'pagerduty' ? 'YOUR-ROUTING-KEY' : undefined
  return JSON.parse(alertRequest({ shape, url: 'https://hooks.example.com/', secret }, notice).body)
}
