import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { defineConfig, type Plugin } from 'vite'

const site = join(import.meta.dirname, 'dist', 'site')

/** Leaves a compressed twin beside every file of text: the hub sends it as it is, so that no request costs a compression. */
const compressed: Plugin = {
  name: 'compressed',
  closeBundle() {
    for (const { name, parentPath } of readdirSync(site, { withFileTypes: true, recursive: true })) {
      const file = join(parentPath, name)
      if (/\.(css|html|js|svg)$/.test(name)) writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: 9 }))
    }
  },
}

export default defineConfig({
  base: './',
  plugins: [compressed],
  resolve: { conditions: ['firebreak-source', 'browser', 'import', 'module', 'default'] },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../../dist/site',
    emptyOutDir: true,
    sourcemap: false,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
})
