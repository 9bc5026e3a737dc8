import { type CommandIo, UsageError } from '../command/command.ts'

/** Prompts on the terminal without showing the input. From a pipe it reads the first line. */
export function askSecret(question: string, io: CommandIo): Promise<string> {
  const { stdin, stderr } = io
  const isTerminal = stdin.isTTY === true
  if (isTerminal) stderr.write(question)
  return new Promise((resolve, reject) => {
    let typed = ''
    const finish = (result: string | Error) => {
      stdin.off('data', onData)
      stdin.off('end', onEnd)
      if (isTerminal) {
        stdin.setRawMode(false)
        stderr.write('\n')
      }
      stdin.pause()
      if (typeof result === 'string') resolve(result)
      else reject(result)
    }
    const onEnd = () => finish(typed)
    const onData = (chunk: Buffer | string) => {
      for (const char of String(chunk)) {
        if (char === '\n' || char === '\r') return finish(typed)
        if (char === '\u0003' || char === '\u0004') return finish(new UsageError('no password was given'))
        typed = char === '\u007f' || char === '\b' ? typed.slice(0, -1) : typed + char
      }
    }
    if (isTerminal) stdin.setRawMode(true)
    stdin.on('data', onData)
    stdin.on('end', onEnd)
    stdin.resume()
  })
}
