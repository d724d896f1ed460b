import { baseUrl } from '../../config/rules.ts';
import { ALL_CLIENT_SETUPS } from '../../pages/client-setups.ts';
import { addScheme } from '../command/add-scheme.ts';
import { UsageError } from '../command/errors.ts';
import { defineCommand, JSON_OUTPUT, textOption } from '../command-line/command.ts';

const findProblem = (url: string): string | undefined =>
  baseUrl.parse(addScheme(url)) === undefined
    ? `${JSON.stringify(url)} is not ${baseUrl.allowed}.`
    : undefined;

export const connectCommand = defineCommand({
  name: 'connect',
  summary: 'print how to add the gateway to an MCP client',
  description: [
    'Without CLIENT it lists the clients. The address is URL (or --url), or BASE_URL of the environment or .env, or http://localhost:3000. Without a scheme, http is meant on this machine (localhost:3000) and https elsewhere.',
  ],
  operands: [
    { name: 'CLIENT', summary: 'the client', choices: ALL_CLIENT_SETUPS.map(({ id }) => id) },
    { name: 'URL', summary: 'the public address of the gateway, as --url gives it' },
  ],
  options: {
    url: textOption(
      'URL',
      'https://mcp.example.com',
      'the public address of the gateway, instead of BASE_URL',
      { findProblem },
    ),
    view: textOption(
      'NAME',
      'research',
      'a view of the gateway, or a server, in place of everything',
      {
        findProblem: (name) =>
          /^[a-z][a-z0-9-]{0,31}$/.test(name)
            ? undefined
            : `${JSON.stringify(name)} must be a lower-case letter, then letters, digits and "-".`,
      },
    ),
    name: textOption('NAME', 'tools', 'what the client calls the gateway, instead of postern', {
      findProblem: (name) =>
        /^[\w-]+$/.test(name)
          ? undefined
          : `${JSON.stringify(name)} must consist of letters, digits, "-" and "_".`,
    }),
    json: JSON_OUTPUT,
  },
  examples: {
    'postern connect cursor': 'what to put into which file of Cursor',
    'postern connect cursor --view research': 'the same of one view alone',
    'postern connect claude-code https://mcp.example.com': 'the commands for a gateway elsewhere',
  },
  async run(options, [client, address], invocation) {
    const problem = address === undefined ? undefined : findProblem(address);
    if (problem !== undefined) throw new UsageError(`URL: ${problem}`);
    if (address !== undefined && options.url !== undefined)
      throw new UsageError('The address is given twice: as URL, and by --url. Keep one.');
    const { connect } = await import('../connect/connect.ts');
    const url = address ?? options.url;
    connect(
      { ...options, client, url: url === undefined ? undefined : addScheme(url) },
      invocation,
    );
  },
});
