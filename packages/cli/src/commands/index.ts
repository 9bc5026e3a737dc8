import type { Command } from '../command/command.ts'
import { drill } from './drill.ts'
import { off, on } from './switch.ts'
import { top } from './top.ts'

/** Every command, in the order of the help. */
export const commands: readonly Command[] = [top, drill, off, on]
