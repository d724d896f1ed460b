import { styleText } from 'node:util';
import type { ClientSetup, GatewayEntry } from '../../site/client-setups.ts';

/** For a terminal. */
export function renderSetup(setup: ClientSetup, entry: GatewayEntry): string {
  const { title, place, isRemote, isUntried, link } = setup;
  const head = place === undefined ? '' : `In ${place}:\n`;
  const next = setup.next?.(entry).replaceAll('`', '');
  const notes = [
    ...(next === undefined ? [] : [next]),
    ...(isUntried ? ['We have not tried this client: compare with its documentation.'] : []),
    ...(isRemote ? ['The gateway must be reachable from the internet.'] : []),
    ...(link === undefined ? [] : [`Or open ${link(entry)}`]),
  ];
  return [styleText('bold', title), `${head}${setup.render(entry)}`, notes.join('\n')].join('\n\n');
}
