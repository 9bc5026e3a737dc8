import { signal } from '@preact/signals'
import { t } from '../text/text.ts'

/** What was done or refused, with the way back where there is one. */
export interface Notice {
  readonly text: string
  readonly isProblem?: boolean
  readonly undo?: () => Promise<unknown>
}

const shown = signal<Notice | undefined>(undefined)

/** Shows one notice; it stays until the next, or until it is closed. */
export function notify(notice: Notice): void {
  shown.value = notice
}

/** Does something and says how it went; whether it worked. An action that gives a way back is asked for it by `undo`. */
export async function attempt<Done>(
  done: string,
  action: () => Promise<Done>,
  undo?: (done: Done) => Promise<unknown>,
): Promise<boolean> {
  try {
    const result = await action()
    notify(undo === undefined ? { text: done } : { text: done, undo: () => undo(result) })
    return true
  } catch (error) {
    notify({ text: (error as Error).message, isProblem: true })
    return false
  }
}

export function Notices() {
  const notice = shown.value
  return (
    <div class="notices" role="status">
      {notice !== undefined && (
        <div class={notice.isProblem ? 'notice problem' : 'notice'}>
          <span>{notice.text}</span>
          {notice.undo !== undefined && (
            <button type="button" onClick={() => void attempt(t('Undone.'), notice.undo!)}>
              {t('Undo')}
            </button>
          )}
          <button type="button" class="plain" aria-label={t('Close')} onClick={() => (shown.value = undefined)}>
            ✕
          </button>
        </div>
      )}
    </div>
  )
}
