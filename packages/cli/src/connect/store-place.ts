import type { StorePlace } from '@firebreak/hub'
import type { CommandIo } from '../command/command.ts'

/** The flags of commands that work on a hub's store without a hub, for `parseArgs`. */
export const storeOptions = {
  hub: { type: 'string' },
  'data-folder': { type: 'string' },
  'store-url': { type: 'string' },
} as const

/** The store that flags or environment name; undefined where the hub is to be asked. */
export function storePlace(
  values: { readonly [name in keyof typeof storeOptions]?: string | undefined },
  { env }: CommandIo,
): StorePlace | undefined {
  const isHubNamed = values.hub !== undefined
  const dataFolder = values['data-folder'] ?? (isHubNamed ? undefined : env['FIREBREAK_HUB_DATA_FOLDER'])
  const storeUrl = values['store-url'] ?? (isHubNamed ? undefined : env['FIREBREAK_HUB_STORE_URL'])
  if (storeUrl !== undefined) return { storeUrl }
  return dataFolder === undefined ? undefined : { dataFolder }
}
