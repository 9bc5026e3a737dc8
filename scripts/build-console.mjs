// Builds the console's page with Vite if a source is newer than the built page. Prints nothing if there is nothing to do.
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './setup.mjs'

const room = join(root, 'packages', 'console')
const built = join(room, 'dist', 'site', 'index.html')

function newest(folder) {
  let time = 0
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (entry.isFile()) time = Math.max(time, statSync(join(entry.parentPath, entry.name)).mtimeMs)
  }
  return time
}

const config = join(room, 'vite.config.ts')
if (existsSync(config)) {
  const sources = Math.max(
    newest(join(room, 'src')),
    newest(join(root, 'packages', 'core', 'src')),
    statSync(config).mtimeMs,
  )
  if (!existsSync(built) || statSync(built).mtimeMs < sources) {
    // A build started by a test would otherwise get the development runtime.
    process.env.NODE_ENV = 'production'
    const { build } = await import('vite')
    await build({ root: join(room, 'src', 'page'), configFile: config, logLevel: 'error' })
  }
}
