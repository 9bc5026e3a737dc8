import { type ConfigCentre, centreUrlForm, openCentre, parseCentreUrl } from '@firebreak/centre'
import type { Runtime } from '@firebreak/core'
import { HubConfigError } from '../errors.ts'

/** The centre that `publishTo` names; it connects when the first table is written. */
export function openConfigCentre(url: string, runtime?: Runtime): ConfigCentre {
  // The URL may contain a password: it must not be in the message.
  if (parseCentreUrl(url) === undefined) throw new HubConfigError('publishTo', `publishTo must be ${centreUrlForm}`)
  return openCentre(url, { option: 'publishTo', ...(runtime !== undefined && { runtime }) })
}
