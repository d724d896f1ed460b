// Options that several commands have.
import { flag, text } from './command.ts';

export const CATALOG = text(
  'FILE',
  'catalog.js',
  'serve the tools, prompts and resources of FILE instead of the built-in ones',
);

export const CONFIG = text(
  'FILE',
  'mcp.json',
  'put the MCP servers of FILE (JSON or YAML) behind the gateway, by its rules',
);

const MAX_PORT = 65_535;

export const PORT = text('N', '3010', 'listen on this port instead of PORT', {
  findProblem(given) {
    const isPort = /^[1-9]\d{0,4}$/.test(given) && Number(given) <= MAX_PORT;
    return isPort ? undefined : `${JSON.stringify(given)} is not a number from 1 to 65535.`;
  },
});

/** Of `postern doctor` and `postern lock`: a user's access token, for what `summary` says. */
export const tokenOptions = (summary: string) => ({
  token: text('TOKEN', '- <token.txt', `${summary} - reads it from standard input`, {
    takesStandardInput: true,
  }),
  tokenFile: text(
    'FILE',
    'token.txt',
    'a file with this token: other users of the machine can read what follows --token',
    { standardInput: '--token -' },
  ),
});

export const JSON_OUTPUT = flag('print JSON, for programs');
