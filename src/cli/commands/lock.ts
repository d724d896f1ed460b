import { defineCommand } from '../command-line/command.ts';
import { JSON_OUTPUT, TOKEN, TOKEN_FILE } from '../command-line/options.ts';

export const lockCommand = defineCommand({
  name: 'lock',
  summary: 'approve what the MCP servers say of their tools now: postern.lock',
  description: [
    'Asks each server of the configuration file for its tools and prompts, and writes what they say into postern.lock beside that file. From then on, the gateway hides what is new or has changed until it is approved.',
  ],
  options: {
    config: {
      kind: 'text',
      value: 'FILE',
      summary: 'the file that names the servers; postern.lock lies beside it',
      example: '--config mcp.json',
    },
    check: { kind: 'flag', summary: 'write nothing; say what differs' },
    token: {
      ...TOKEN,
      summary:
        'an access token, for servers that answer users only; adds what this user sees. - reads it from standard input',
    },
    tokenFile: TOKEN_FILE,
    json: JSON_OUTPUT,
  },
  examples: [
    { command: 'postern lock --config mcp.json', does: 'approve what the servers say now' },
    {
      command: 'postern lock --config mcp.json --check',
      does: 'in a pipeline: fail if a server says something else',
    },
    {
      command: 'postern lock --config mcp.json --token-file token.txt',
      does: 'with what the user of this token sees',
    },
  ],
  exitCode1: 'with --check, also: something differs, or there is no lock',
  run: async (options, _operands, invocation) =>
    (await import('../lock/lock.ts')).lock(options, invocation),
});
