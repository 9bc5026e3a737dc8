// Copies Lua and SQL files next to the built modules that load them: `tsc` does not.
import { cpSync, mkdirSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { root } from './setup.mjs'

for (const room of readdirSync(join(root, 'packages'))) {
  const from = join(root, 'packages', room, 'src')
  for (const file of readdirSync(from, { recursive: true })) {
    if (!/\.(lua|sql)$/.test(file)) continue
    const to = join(root, 'packages', room, 'dist', file)
    mkdirSync(dirname(to), { recursive: true })
    cpSync(join(from, file), to)
  }
}
