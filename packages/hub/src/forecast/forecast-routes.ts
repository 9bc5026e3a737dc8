import type { ForecastSettings, ForecastView } from '@firebreak/core'
import { z } from 'zod'
import { ApiProblem } from '../errors.ts'
import type { ApiRoute } from '../http/api-route.ts'
import type { HubCore } from '../hub-core.ts'
import { ZoneClock } from '../schedule/zone-clock.ts'

const settingsBody = z.strictObject({
  mode: z.enum(['off', 'suggest', 'do']).optional(),
  leadMs: z.number().int().min(0).max(3_600_000).optional(),
  timeZone: z.string().min(1).max(100).optional(),
})

/** What is expected to be hot, and whether it is warmed in advance. */
export function forecastRoutes(core: HubCore): ApiRoute[] {
  const { forecaster } = core
  return [
    {
      method: 'GET',
      path: '/v1/forecast',
      summary: 'Recurring heat: when, how likely, which keys, and whether they are warmed in advance',
      role: 'viewer',
      answer: 'ForecastView',
      handle: (): ForecastView => forecaster.view(),
    },
    {
      method: 'PUT',
      path: '/v1/forecast/settings',
      summary:
        'Sets what to do about expected heat: {mode: "off" | "suggest" | "do", leadMs, timeZone}; omitted fields stay unchanged',
      role: 'operator',
      body: settingsBody,
      answer: 'ForecastSettings',
      async handle({ body, caller }): Promise<ForecastSettings> {
        const { mode, leadMs, timeZone } = body as z.infer<typeof settingsBody>
        const before = forecaster.settings
        const settings = {
          mode: mode ?? before.mode,
          leadMs: leadMs ?? before.leadMs,
          timeZone: timeZone ?? before.timeZone,
        }
        checkZone(settings.timeZone)
        await forecaster.saveSettings(settings)
        await core.journal.audit(caller.who, 'change the forecast', before, settings)
        return settings
      },
    },
  ]
}

function checkZone(timeZone: string): void {
  try {
    new ZoneClock(timeZone)
  } catch {
    const message = `unknown time zone ${JSON.stringify(timeZone)}; use a name such as "Europe/Berlin" or "UTC"`
    throw new ApiProblem(400, 'FB_INPUT_INVALID', message, 'timeZone')
  }
}
