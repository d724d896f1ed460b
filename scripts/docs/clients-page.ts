import {
  CLIENT_SETUPS,
  type ClientSetup,
  DEFAULT_ENTRY_NAME,
} from '../../src/core/client-setups.ts';

const ENTRY = { name: DEFAULT_ENTRY_NAME, url: '{base_url}/mcp' } as const;

const BLOCK = /(<!-- clients -->\n)[\s\S]*?(<!-- end of clients -->)/;

/** `docs/clients.md` with what `postern connect` prints. */
export const renderClientsPage = (present: string): string =>
  present.replace(
    BLOCK,
    (_, start: string, end: string) => `${start}\n${CLIENT_SETUPS.map(renderSetup).join('')}${end}`,
  );

function renderSetup(setup: ClientSetup): string {
  const { title, place, language, next, isRemote } = setup;
  const head = place === undefined ? '' : `In ${place.includes('.') ? `\`${place}\`` : place}:\n\n`;
  const notes = [
    ...(next === undefined ? [] : [next]),
    ...(isRemote ? ['The gateway must be reachable from the internet.'] : []),
  ];
  return `### ${title}\n\n${head}\`\`\`${language}\n${setup.render(ENTRY)}\n\`\`\`\n\n${notes.join(' ')}\n\n`;
}
