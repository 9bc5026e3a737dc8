export const pageBytes: number = 2 ** 20

/** The longest key that a dict holds. */
export const maxKeyBytes = 65_536

const pageShift = 18
const addressMask = (1 << pageShift) - 1
/** The first bytes of a page are unused, so that no block has ref 0. */
const firstAddress = 4
const longMark = 255
const maxPages = 2 ** (32 - pageShift)
const noPage = new Uint8Array(0)

/**
 * Keys as bytes, packed into pages of one mebibyte, outside V8's heap.
 *
 * A block is a length and the key, rounded up to four bytes. It is identified by a *ref*: its address in units of four
 * bytes, which reaches 16 GiB with 32 bits. Ref 0 means no block.
 *
 *     ref   31 ……………………… 18 17 ……………………………………… 0
 *           page             address in the page / 4
 *
 *     block [length < 255] [key …] [padding]      or      [255] [length, 3 bytes little-endian] [key …] [padding]
 *
 * Blocks are only ever appended; a freed block is left in place and counts as dead in its page. So there are no size
 * classes and no fragmentation by size: when the dead bytes exceed half of the live ones, the page with the most dead
 * bytes is *cleaned*, which means that its live blocks are appended again and the page is freed. The arena does not
 * know who holds a ref; the dict asks for the blocks of a dirty page (`nextToClean`), a few per operation, and moves
 * the ones that it still refers to. Memory is therefore at most 1.5 × live + a few pages, whatever the order of
 * insertions and deletions.
 */
export class KeyArena {
  /** Memory is short: dead bytes are tolerated up to an eighth of the live ones instead of a half. */
  isTight = false
  readonly #pages: Uint8Array[] = []
  /** Bytes written in each page, and how many of them are live. */
  readonly #used: number[] = []
  readonly #live: number[] = []
  readonly #freePages: number[] = []
  #tail = -1
  #pageCount = 0
  #liveBytes = 0
  #deadBytes = 0
  #cleaningRef = 0

  /** Memory allocated, in whole pages. */
  get bytes(): number {
    return this.#pageCount * pageBytes
  }

  /** True if another block of this many key bytes fits without a new page. */
  hasRoomFor(keyLength: number): boolean {
    return this.#tail >= 0 && this.#used[this.#tail]! + blockBytes(keyLength) <= pageBytes
  }

  /** True if no further page can be addressed. */
  get isFull(): boolean {
    return this.#pageCount >= maxPages
  }

  /** Appends a key and returns its ref. */
  add(bytes: Uint8Array, start: number, end: number): number {
    const length = end - start
    if (!this.hasRoomFor(length)) this.#openPage()
    const tail = this.#tail
    const page = this.#pages[tail]!
    const address = this.#used[tail]!
    let at = address
    if (length < longMark) {
      page[at++] = length
    } else {
      page[at++] = longMark
      page[at++] = length & 0xff
      page[at++] = (length >>> 8) & 0xff
      page[at++] = length >>> 16
    }
    for (let index = start; index < end; index++) page[at++] = bytes[index]!
    const size = blockBytes(length)
    this.#used[tail] = address + size
    this.#live[tail]! += size
    this.#liveBytes += size
    return ((tail << pageShift) | (address >>> 2)) >>> 0
  }

  /** Marks a block dead; a page without live blocks is freed at once. */
  free(ref: number): void {
    const page = ref >>> pageShift
    const size = blockBytes(this.lengthOf(ref))
    this.#live[page]! -= size
    this.#liveBytes -= size
    this.#deadBytes += size
    if (this.#live[page] === 0 && page !== this.#tail) this.#releasePage(page)
  }

  /** Deletes all keys; one page is kept. */
  clear(): void {
    for (let page = 0; page < this.#pages.length; page++) {
      if (page !== this.#tail && this.#pages[page] !== noPage) this.#releasePage(page)
    }
    if (this.#tail >= 0) {
      this.#used[this.#tail] = firstAddress
      this.#live[this.#tail] = 0
    }
    this.#liveBytes = this.#deadBytes = this.#cleaningRef = 0
  }

  lengthOf(ref: number): number {
    const page = this.#pages[ref >>> pageShift]!
    const at = (ref & addressMask) << 2
    const length = page[at]!
    return length < longMark ? length : page[at + 1]! | (page[at + 2]! << 8) | (page[at + 3]! << 16)
  }

  /** Reads a byte of the block to bring it into the CPU's cache. */
  touch(ref: number): number {
    return this.#pages[ref >>> pageShift]![(ref & addressMask) << 2]!
  }

  /** A view of the key's bytes, valid until the next change of the arena. */
  view(ref: number): Uint8Array {
    const at = (ref & addressMask) << 2
    const page = this.#pages[ref >>> pageShift]!
    const length = this.lengthOf(ref)
    const start = at + (length < longMark ? 1 : 4)
    return page.subarray(start, start + length)
  }

  equals(ref: number, bytes: Uint8Array, start: number, end: number): boolean {
    const page = this.#pages[ref >>> pageShift]!
    let at = (ref & addressMask) << 2
    const length = page[at++]!
    if (length !== end - start) {
      if (length !== longMark || this.lengthOf(ref) !== end - start) return false
      at += 3
    } else if (length === longMark) {
      // A key of exactly 255 bytes uses the long form too.
      if (this.lengthOf(ref) !== longMark) return false
      at += 3
    }
    for (let index = start; index < end; index++) if (page[at++] !== bytes[index]) return false
    return true
  }

  /**
   * The next block of the page being cleaned, or 0 while there are few dead bytes. The owner re-adds it if it is live,
   * and frees it; the page is freed with its last live block.
   */
  nextToClean(): number {
    let ref = this.#cleaningRef
    if (ref === 0) {
      const page = this.#dirtiestPage()
      if (page < 0) return 0
      ref = page * 2 ** pageShift + firstAddress / 4
    }
    const next = ref + blockBytes(this.lengthOf(ref)) / 4
    const isLast = (next - (ref - (ref & addressMask))) * 4 >= this.#used[ref >>> pageShift]!
    this.#cleaningRef = isLast ? 0 : next
    return ref
  }

  #dirtiestPage(): number {
    const borne = this.isTight ? this.#liveBytes / 8 + pageBytes / 2 : this.#liveBytes / 2 + 2 * pageBytes
    if (this.#deadBytes <= borne) return -1
    let best = -1
    let mostDead = 0
    for (let page = 0; page < this.#pages.length; page++) {
      const dead = this.#used[page]! - this.#live[page]!
      if (page === this.#tail || dead <= mostDead) continue
      best = page
      mostDead = dead
    }
    return best
  }

  #releasePage(page: number): void {
    if (this.#cleaningRef >>> pageShift === page) this.#cleaningRef = 0
    this.#deadBytes -= this.#used[page]! - firstAddress - this.#live[page]!
    this.#pages[page] = noPage
    this.#used[page] = 0
    this.#live[page] = 0
    this.#freePages.push(page)
    this.#pageCount--
  }

  #openPage(): void {
    const page = this.#freePages.pop() ?? this.#pages.length
    this.#pages[page] = new Uint8Array(pageBytes)
    this.#used[page] = firstAddress
    this.#live[page] = 0
    const before = this.#tail
    this.#tail = page
    this.#pageCount++
    if (before >= 0 && this.#live[before] === 0) this.#releasePage(before)
  }
}

function blockBytes(keyLength: number): number {
  return (keyLength + (keyLength < longMark ? 1 : 4) + 3) & ~3
}
