import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { ShopProcessOptions } from './shop-process.ts'

/** Several shop processes behind each other, as behind a load balancer. */
export class ShopFleet {
  readonly ports: readonly number[]
  readonly children: readonly ChildProcess[]

  private constructor(started: readonly { port: number; child: ChildProcess }[]) {
    this.ports = started.map(({ port }) => port)
    this.children = started.map(({ child }) => child)
  }

  static async start(count: number, options: Omit<ShopProcessOptions, 'number'>, firstNumber = 0): Promise<ShopFleet> {
    const numbers = Array.from({ length: count }, (_, index) => firstNumber + index)
    return new ShopFleet(await Promise.all(numbers.map((number) => startShop({ ...options, number }))))
  }

  async stop(): Promise<void> {
    await Promise.all(
      this.children.map((child) => {
        if (child.exitCode !== null || child.signalCode !== null) return undefined
        const ended = new Promise((resolve) => child.on('exit', resolve))
        child.kill('SIGTERM')
        const timer = setTimeout(() => child.kill('SIGKILL'), 5000)
        return ended.then(() => clearTimeout(timer))
      }),
    )
  }
}

/** Starts one shop process and waits for its port. */
export function startShop(options: ShopProcessOptions): Promise<{ port: number; child: ChildProcess }> {
  const file = fileURLToPath(new URL('./shop-process.ts', import.meta.url))
  const args = ['--conditions=firebreak-source', '--disable-warning=ExperimentalWarning', file, JSON.stringify(options)]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  process.on('exit', () => child.kill('SIGKILL'))
  return new Promise((resolve, reject) => {
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      const port = output.match(/on port (\d+)/)?.[1]
      if (port !== undefined) resolve({ port: Number(port), child })
    })
    child.on('exit', (code) => reject(new Error(`shop ${options.number} ended with code ${code} before it listened`)))
  })
}
