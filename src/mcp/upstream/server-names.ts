// §18.1: names of servers, which stand in URLs and before names of tools. Views have names of the same form.

const NAME = /^[a-z][a-z0-9-]{0,31}$/;
const MAX_LENGTH = 32;

/** §32: `/mcp/server-card` is where MCP has the gateway's own server card. */
export const SERVER_CARD_PATH_NAME = 'server-card';

export const describeTakenName = (what: 'server' | 'view'): string =>
  `A ${what} cannot be called ${SERVER_CARD_PATH_NAME}: /mcp/${SERVER_CARD_PATH_NAME} is where clients look for the gateway’s own server card. Rename it.`;

/** The same name always becomes the same. Undefined where nothing of it can stand in one. */
export function deriveServerName(name: string): string | undefined {
  const lowerName = name.toLowerCase();
  if (NAME.test(lowerName)) return lowerName;
  const fitting = name
    .normalize('NFD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .replace(/^(?=\d)/, 'mcp-')
    .slice(0, MAX_LENGTH)
    .replace(/-+$/, '');
  return NAME.test(fitting) ? fitting : undefined;
}
