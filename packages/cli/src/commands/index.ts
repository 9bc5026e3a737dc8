import type { Command } from '../command/command.ts'
import { completionCommand } from './completion.ts'
import { drill } from './drill.ts'
import { exportCommand } from './export.ts'
import { find } from './find/find.ts'
import { hosts } from './hosts.ts'
import { hub } from './hub.ts'
import { ids } from './ids/ids.ts'
import { keys } from './keys.ts'
import { limitsCommand } from './limits.ts'
import { manCommand } from './man.ts'
import { prewarm } from './prewarm.ts'
import { proxy } from './proxy.ts'
import { rules } from './rules.ts'
import { off, on } from './switch.ts'
import { top } from './top.ts'
import { up } from './up.ts'

/** Every command, in the order of the help. */
export const commands: readonly Command[] = [
  up,
  hub,
  proxy,
  top,
  keys,
  hosts,
  rules,
  prewarm,
  find,
  drill,
  off,
  on,
  exportCommand,
  limitsCommand,
  ids,
  completionCommand(() => commands),
  manCommand(() => commands),
]
