import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { t } from '../text/text.ts'

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
  readonly name?: string
}

/** A window over the page that keeps the focus until it is closed. */
export function Dialog({ title, onClose, children, name }: DialogProps) {
  const place = useRef<HTMLDialogElement>(null)
  useEffect(() => place.current?.showModal(), [])
  const closeOutside = (event: MouseEvent) => {
    if (event.target === place.current) onClose()
  }
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes a dialog by itself.
    <dialog ref={place} class={name} aria-label={title} onClose={onClose} onClick={closeOutside}>
      <div class="dialog-head">
        <h2>{title}</h2>
        <button type="button" class="plain" aria-label={t('Close')} onClick={onClose}>
          ✕
        </button>
      </div>
      {children}
    </dialog>
  )
}

interface ConfirmProps {
  readonly title: string
  readonly text: string
  readonly action: string
  readonly onConfirm: () => void
  readonly onClose: () => void
}

/** Asks before something that others will feel. */
export function Confirm({ title, text, action, onConfirm, onClose }: ConfirmProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{text}</p>
      <p class="buttons">
        <button
          type="button"
          class="danger"
          onClick={() => {
            onClose()
            onConfirm()
          }}
        >
          {action}
        </button>
        <button type="button" onClick={onClose}>
          {t('Cancel')}
        </button>
      </p>
    </Dialog>
  )
}
