import { type FirebreakHandle, openFirebreak, type PluginOptions } from './firebreak-handle.ts'

/** Inject the handle with `@Inject(firebreakToken)`. */
export const firebreakToken = 'FIREBREAK'

type Factory = (...dependencies: never[]) => PluginOptions | Promise<PluginOptions>

/** Options that depend on other providers. */
export interface FirebreakAsyncOptions {
  readonly imports?: readonly unknown[]
  readonly inject?: readonly unknown[]
  readonly useFactory: Factory
}

/** A dynamic module as Nest takes it, written out so that this file can be imported without Nest. */
export interface FirebreakDynamicModule {
  module: typeof FirebreakModule
  global: true
  imports: never[]
  providers: never[]
  exports: never[]
}

/** NestJS module: `FirebreakModule.forRoot({ client, hubs })` or `forRootAsync({ inject, useFactory })`. */
// biome-ignore lint/complexity/noStaticOnlyClass: a module of Nest is a class.
export class FirebreakModule {
  static forRoot(options: PluginOptions): FirebreakDynamicModule {
    return FirebreakModule.forRootAsync({ useFactory: () => options })
  }

  static forRootAsync({ imports = [], inject = [], useFactory }: FirebreakAsyncOptions): FirebreakDynamicModule {
    const provider = {
      provide: firebreakToken,
      inject: [...inject],
      useFactory: async (...dependencies: never[]) => withShutdown(openFirebreak(await useFactory(...dependencies))),
    }
    return {
      module: FirebreakModule,
      global: true,
      imports: [...imports] as never[],
      providers: [provider] as unknown as never[],
      exports: [firebreakToken] as unknown as never[],
    }
  }
}

/** Nest calls `onModuleDestroy` on every provider that has it. */
function withShutdown(handle: FirebreakHandle): FirebreakHandle & { onModuleDestroy(): void } {
  return Object.assign(handle, { onModuleDestroy: () => handle.close() })
}
