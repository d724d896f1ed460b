// The setup of each client, for the pages that users read: all of it from one table.
import {
  CLIENT_SETUPS,
  type ClientSetup,
  DEFAULT_ENTRY_NAME,
  MORE_CLIENT_SETUPS,
  type Snippet,
} from '../../src/pages/client-setups.ts';

/** The gateway fills this in; braces would need quotes in a shell. */
const SLOT = '{base_url}';
const STAND_IN = 'https://base-url';
const ENTRY = { name: DEFAULT_ENTRY_NAME, url: `${STAND_IN}/mcp` } as const;

/** `all`, `more`, or the id of one, whose heading the page has itself. */
const BLOCK = /(<!-- clients: ([\w-]+) -->\n)[\s\S]*?(<!-- end of clients -->)/g;

/** A page with the output of `postern connect`. */
export const renderClientBlocks = (present: string): string =>
  present.replace(
    BLOCK,
    (_, start: string, which: string, end: string) => `${start}\n${renderBlock(which)}\n\n${end}`,
  );

function renderBlock(which: string): string {
  const list = LISTS.get(which);
  if (list !== undefined) return list.map(renderSection).join('\n\n');
  const setup = CLIENT_SETUPS.find(({ id }) => id === which);
  if (setup === undefined) throw new Error(`There is no client ${which}.`);
  return renderSetup(setup);
}

const renderSection = (setup: ClientSetup): string => `### ${setup.title}\n\n${renderSetup(setup)}`;

const LISTS: ReadonlyMap<string, readonly ClientSetup[]> = new Map([
  ['all', CLIENT_SETUPS],
  ['more', MORE_CLIENT_SETUPS],
]);

function renderSetup(setup: ClientSetup): string {
  const { instead, isRemote, isUntried } = setup;
  const next = setup.next?.(ENTRY);
  const notes = [
    ...(isUntried ? ['Not tested: see below.'] : []),
    ...(next === undefined ? [] : [next]),
    ...(isRemote ? ['The gateway must be reachable from the internet.'] : []),
  ].join(' ');
  const parts = [renderSnippet('In', setup), notes, instead && renderSnippet('Or in', instead)];
  return parts.filter(Boolean).join('\n\n');
}

function renderSnippet(word: string, { place, language, render }: Snippet): string {
  const head = place === undefined ? '' : `${word} ${isFile(place) ? `\`${place}\`` : place}:\n\n`;
  const text = render(ENTRY).replaceAll(STAND_IN, SLOT);
  return `${head}\`\`\`${language}\n${text}\n\`\`\``;
}

const isFile = (place: string): boolean => place.includes('.');
