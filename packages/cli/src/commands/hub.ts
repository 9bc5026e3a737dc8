import { pageFolder } from '@firebreak/console'
import { hubSettings, openHubServices, resolveHubConfig, startHub } from '@firebreak/hub'
import type { Command } from '../command/command.ts'
import { whenEnded } from '../command/when-ended.ts'
import { flagsOf, helpOf, parseSettingFlags } from '../flags/command-settings.ts'
import { defaultHubPort } from '../hub-api/hub-api.ts'
import { onHangUp } from '../limits/on-hang-up.ts'
import { openRuleStore } from '../limits/rule-store.ts'
import { openSaleDesk } from '../sale/sale-desk.ts'

export const hub: Command = {
  flags: flagsOf(hubSettings),
  help: `Run a hub with its console.

Examples:
  firebreak hub
  firebreak hub --data-folder ./data --port 7070
  firebreak hub --data-folder ./data --limits-policy policy.yaml
  firebreak hub --host 0.0.0.0 --tokens-file tokens.yaml --config hub.yaml

${helpOf(hubSettings)}
SIGTERM and Ctrl-C stop it once the work in progress is done.
`,
  async run(args, io) {
    const ended = whenEnded(io.signal)
    const flags = parseSettingFlags(hubSettings, args)
    const { options: hubOptions, settings } = resolveHubConfig({ flags, env: io.env })
    for (const warning of settings.warnings) io.stderr.write(`${warning}\n`)
    const { dataFolder } = hubOptions
    const policyFile = settings.values['limitsPolicy'] as string | undefined
    const saleRedis = settings.values['saleRedis'] as string | undefined
    const sale = saleRedis === undefined ? undefined : openSaleDesk(saleRedis)
    const place = {
      redis: settings.values['limitsRedis'] as string | undefined,
      leakStorage: settings.values['limitsLeakStorage'] as 'list' | 'zset' | undefined,
      prefix: settings.values['limitsPrefix'] as string | undefined,
    }
    const counters = openRuleStore(place, (error) =>
      io.stderr.write(`firebreak hub: the Redis of the rate limits: ${error.message}\n`),
    )
    const services = await openHubServices({
      ...(dataFolder !== undefined && { dataFolder }),
      ...(policyFile !== undefined && { policyFile }),
      ...(sale !== undefined && { sale }),
      counters: counters.store,
      koalaPaths: settings.values['limitsKoalaPaths'] === true,
    })
    const running = await startHub({
      port: defaultHubPort,
      consoleFolder: pageFolder,
      ...hubOptions,
      plugins: services.plugins,
    })
    io.stdout.write(`hub ${running.url}\n`)
    const stopListening = policyFile === undefined ? undefined : onHangUp('firebreak hub', services.reloadPolicy, io)
    await ended
    stopListening?.()
    await running.close()
    await services.close()
    sale?.close()
    counters.close()
    return 0
  },
}
