/** How many channels of each kind a connection is subscribed to, by the server's confirmations. */
export class Subscriptions {
  #channels = 0
  #patterns = 0
  #shardChannels = 0

  get isAny(): boolean {
    return this.#channels + this.#patterns + this.#shardChannels > 0
  }

  /** A confirmation came: `count` is the number in it, which for channels and patterns is that of both together. */
  confirm(kind: string, count: number): void {
    if (kind === 'ssubscribe' || kind === 'sunsubscribe') this.#shardChannels = count
    else if (kind.startsWith('p')) this.#patterns = count - this.#channels
    else this.#channels = count - this.#patterns
  }

  /** How many confirmations a command will get that names so many channels; of none it leaves all. */
  confirmationsOf(command: string, channels: number): number {
    if (channels > 0) return channels
    if (command.startsWith('P')) return Math.max(1, this.#patterns)
    return Math.max(1, command === 'SUNSUBSCRIBE' ? this.#shardChannels : this.#channels)
  }
}
