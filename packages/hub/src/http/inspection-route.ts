import { describeValue, type InspectedPayload, type KeyInspection, keyText, parseKeyText } from '@firebreak/core'
import { z } from 'zod'
import type { SensorSessions } from '../deliver/sensor-sessions.ts'
import { ApiProblem } from '../errors.ts'
import type { HubCore } from '../hub-core.ts'
import type { ApiRoute } from './api-route.ts'

const inspectionBody = z.strictObject({ value: z.boolean().default(false) })

/**
 * Describes a key by asking a process that touches it; the value requires an admin and a process that reveals values.
 */
export function inspectionRoute(core: HubCore, sessions: SensorSessions): ApiRoute {
  return {
    method: 'POST',
    path: '/v1/keys/:cluster/:key/inspection',
    summary: 'Asks a process for the type, size and TTL of a key; an admin for its value too',
    role: 'operator',
    body: inspectionBody,
    answer: 'KeyInspection',
    async handle({ params, body, caller }): Promise<KeyInspection> {
      const { value: wantsValue } = body as z.infer<typeof inspectionBody>
      const [redisClusterId, text] = [params['cluster']!, params['key']!]
      const name = parseKeyText(text)
      if (name === undefined)
        throw new ApiProblem(400, 'FB_INPUT_INVALID', 'the key is not percent-encoded text', 'key')
      if (wantsValue && caller.role !== 'admin')
        throw new ApiProblem(403, 'FB_ROLE_REFUSED', `${caller.who} is ${caller.role}; a value needs the role admin`)
      const key = keyText(name)
      const shown = core.outside(name)
      // Recorded before asking: looking at a value leaves a trace even if nobody answers.
      const what = `inspect key ${redisClusterId}/${keyText(shown)}${wantsValue ? ' with its value' : ''}`
      await core.journal.audit(caller.who, what, null, null)
      const services = core.engine.get(redisClusterId, shown)?.tracks.flatMap((track) => [...track.services]) ?? []
      const asked = await core.inspections.ask(
        sessions.inspectable(redisClusterId, services),
        redisClusterId,
        key,
        wantsValue,
      )
      if ('problem' in asked) {
        const message = `no process can describe ${describeValue(text)}: ${asked.problem}`
        throw new ApiProblem(404, 'FB_NOBODY_CAN_ANSWER', message, 'key')
      }
      const { sensor, found } = asked
      return {
        redisClusterId,
        key,
        type: found.type!,
        bytes: found.bytes ?? null,
        ttlMs: found.ttlMs ?? null,
        encoding: found.encoding ?? '',
        commands: perSecond(found),
        ...(found.value !== undefined && { value: { ...readable(found.value), isCut: found.isCut ?? false } }),
        hostId: sensor.hostId,
        serviceId: sensor.serviceId,
      }
    },
  }
}

function perSecond({ commands, heardMs }: InspectedPayload): KeyInspection['commands'] {
  if (commands === undefined || heardMs === undefined) return null
  return commands.map(({ name, count }) => ({ name, perSecond: (count * 1000) / heardMs }))
}

/** Text if it is UTF-8, otherwise unchanged. */
function readable(base64: string): { readonly text: string; readonly isBase64: boolean } {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(base64, 'base64'))
    return { text, isBase64: false }
  } catch {
    return { text: base64, isBase64: true }
  }
}
