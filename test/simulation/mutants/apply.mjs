// Loaded with --import before everything else: plants one fault into one file as it is loaded.
import fs from 'node:fs'
import { registerHooks, syncBuiltinESMExports } from 'node:module'
import { fileURLToPath } from 'node:url'

const { path, find, replace } = JSON.parse(process.env.FIREBREAK_MUTANT)

function planted(text) {
  if (text.split(find).length !== 2) throw new Error(`${path} does not have exactly once: ${find}`)
  return text.replace(find, () => replace)
}

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    if (!url.startsWith('file:') || fileURLToPath(url) !== path) return loaded
    return { ...loaded, source: planted(String(loaded.source)) }
  },
})

// Lua and SQL are read as files.
const { readFileSync } = fs
fs.readFileSync = (file, ...rest) => {
  const text = readFileSync(file, ...rest)
  const name = file instanceof URL ? fileURLToPath(file) : String(file)
  return name === path && /\.(lua|sql)$/.test(path) ? planted(String(text)) : text
}
syncBuiltinESMExports()
