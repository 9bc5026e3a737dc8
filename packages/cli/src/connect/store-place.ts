import type { StorePlace } from '@firebreak/hub'
import type { CommandIo } from '../command/command.ts'
import { secretSetting } from './secret-setting.ts'

/** The flags of commands that use a hub's store without a hub, for `parseArgs`. */
export const storeOptions = {
  hub: { type: 'string' },
  'data-folder': { type: 'string' },
  'store-url': { type: 'string' },
} as const

/** The store named by flags or environment; undefined if the hub should be asked. */
export function storePlace(
  values: { readonly [name in keyof typeof storeOptions]?: string | undefined },
  io: Pick<CommandIo, 'env' | 'stderr'>,
): StorePlace | undefined {
  const isHubNamed = values.hub !== undefined
  const env = isHubNamed ? {} : io.env
  const dataFolder = values['data-folder'] ?? env['FIREBREAK_HUB_DATA_FOLDER']
  const url = { flag: 'store-url', variable: 'FIREBREAK_HUB_STORE_URL' }
  const storeUrl = secretSetting(url, values['store-url'], { ...io, env })
  if (storeUrl !== undefined) return { storeUrl }
  return dataFolder === undefined ? undefined : { dataFolder }
}
