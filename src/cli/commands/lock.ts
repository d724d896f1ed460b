import {
  defineCommand,
  flagOption,
  JSON_OUTPUT,
  textOption,
  tokenOptions,
} from '../command-line/command.ts';

export const lockCommand = defineCommand({
  name: 'lock',
  summary: 'approve what the MCP servers say of their tools now: postern.lock',
  description: [
    'Asks each server of the configuration file for its tools and prompts, and writes what they say into postern.lock beside that file. From then on, the gateway hides what is new or has changed until it is approved.',
  ],
  options: {
    config: textOption(
      'FILE',
      'mcp.json',
      'the file that names the servers; postern.lock lies beside it',
    ),
    check: flagOption('write nothing; say what differs'),
    ...tokenOptions(
      'an access token of the provider (a JWT), for servers that answer users only; adds what this user sees.',
    ),
    json: JSON_OUTPUT,
  },
  examples: {
    'postern lock --config mcp.json': 'approve what the servers say now',
    'postern lock --config mcp.json --check': 'in a pipeline: fail if a server says something else',
    'postern lock --config mcp.json --token-file token.txt':
      'with what the user of this token sees',
  },
  exitCode1: 'with --check, also: something differs, or there is no lock',
  run: async (options, _operands, invocation) =>
    (await import('../lock/lock.ts')).lock(options, invocation),
});
