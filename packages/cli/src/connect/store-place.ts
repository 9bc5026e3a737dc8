import { maskUrl } from '@firebreak/core/resp'
import type { StorePlace } from '@firebreak/hub'
import type { CommandIo } from '../command/command.ts'
import { secretSetting } from './secret-setting.ts'

/** The flags of commands that use a hub's store without a hub, for `parseArgs`. */
export const storeOptions = {
  hub: { type: 'string' },
  'data-folder': { type: 'string' },
  'store-url': { type: 'string' },
} as const

/** Which of them counts, for the help of these commands. */
export const placeOrder = `Flags come first, then FIREBREAK_HUB_STORE_URL, FIREBREAK_HUB_DATA_FOLDER and FIREBREAK_HUB, in this order. If a variable names
a store and FIREBREAK_HUB a hub, the store is used, and stderr says so; --hub URL asks the hub instead.
`

type StoreFlags = { readonly [name in keyof typeof storeOptions]?: string | undefined }

/** The store named by flags or environment; undefined if none is. */
export function storePlace(
  values: StoreFlags,
  { env: all, stderr }: Pick<CommandIo, 'env' | 'stderr'>,
): StorePlace | undefined {
  const { hub, 'data-folder': folder, 'store-url': url } = values
  // A flag is what was meant, whatever the environment names.
  const env = hub !== undefined || folder !== undefined ? {} : all
  const storeUrl = secretSetting({ flag: 'store-url', variable: 'FIREBREAK_HUB_STORE_URL' }, url, { env, stderr })
  const dataFolder = folder ?? env['FIREBREAK_HUB_DATA_FOLDER']
  if (storeUrl !== undefined) return { storeUrl }
  return dataFolder === undefined ? undefined : { dataFolder }
}

/** The same for commands that ask the hub otherwise; says so if the environment names both. */
export function storeOrHub(values: StoreFlags, io: Pick<CommandIo, 'env' | 'stderr'>): StorePlace | undefined {
  const place = storePlace(values, io)
  const isByFlag = values['store-url'] !== undefined || values['data-folder'] !== undefined
  if (place !== undefined && !isByFlag && io.env['FIREBREAK_HUB'] !== undefined) {
    const named =
      'storeUrl' in place
        ? `FIREBREAK_HUB_STORE_URL (${maskUrl(place.storeUrl)})`
        : `FIREBREAK_HUB_DATA_FOLDER (${place.dataFolder})`
    io.stderr.write(`Using the store of ${named}, not the hub of FIREBREAK_HUB; to ask the hub, add --hub URL.\n`)
  }
  return place
}
