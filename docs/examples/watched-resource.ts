import { EventEmitter } from 'node:events';
import { defineResource } from 'postern/define';

const changes = new EventEmitter();
let frozen = false;

/** What the rest of the program calls. */
export function freeze(on: boolean): void {
  frozen = on;
  changes.emit('freeze');
}

export const deployFreeze = defineResource({
  uri: 'platform://freeze',
  name: 'freeze',
  description: 'Whether deployments are frozen.',
  mimeType: 'text/plain',
  read: () => ({ text: frozen ? 'frozen' : 'open' }),
  watch(changed) {
    changes.on('freeze', changed);
    return () => changes.off('freeze', changed);
  },
});
