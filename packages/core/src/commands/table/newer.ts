import type { CommandGroup } from '../command-group.ts'

/** Commands that came after Redis 7.0. */
export const newerCommands: readonly CommandGroup[] = []
