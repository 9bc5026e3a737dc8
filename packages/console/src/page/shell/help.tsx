import { t } from '../text/text.ts'
import { Dialog } from './dialog.tsx'
import { closeOverlay } from './keyboard.ts'
import { pages } from './pages.ts'

/** The keys that work on every page. */
export function Help() {
  const close = () => closeOverlay('help')
  const keys = [
    ['/', t('Find a key, a page or a command')],
    ['j k', t('Next or previous row; Enter opens it')],
    ['p', t('Pause or resume')],
    ['?', t('These keys')],
    ...pages.map(({ letter, title }) => [`g ${letter}`, t(title)] as const),
  ] as const
  return (
    <Dialog title={t('Keyboard')} onClose={close}>
      <dl class="shortcuts">
        {keys.map(([key, text]) => (
          <div key={key}>
            <dt>
              {key.split(' ').map((one) => (
                <kbd key={one}>{one}</kbd>
              ))}
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
