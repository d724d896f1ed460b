import { defineCommand } from '../command-line/command.ts';
import { JSON_OUTPUT, TOKEN, TOKEN_FILE } from '../command-line/options.ts';

export const doctorCommand = defineCommand({
  name: 'doctor',
  summary: 'say why a login fails, and which setting to change',
  description: [
    'With a URL, it checks a running gateway as a client sees it, up to the login page of the provider: name and TLS, metadata, browsers, registration, the redirect URI, the client secret. It registers a client of its own, which has no rights and is forgotten by itself.',
    'Without one, it checks the settings at hand (environment, .env, configuration file): the provider, the client and its secret, the store, the servers behind the gateway; and the gateway as well, where it runs.',
  ],
  operands: [
    {
      name: 'URL',
      summary: 'of a running gateway, such as https://mcp.example.com',
      isRequired: false,
    },
  ],
  options: {
    token: {
      ...TOKEN,
      summary:
        'an access token of a user: check it, too, and what the user sees. - reads it from standard input',
    },
    tokenFile: TOKEN_FILE,
    config: {
      kind: 'text',
      value: 'FILE',
      summary: 'the configuration file; without a URL only',
      example: '--config mcp.json',
    },
    json: JSON_OUTPUT,
  },
  examples: [
    { command: 'postern doctor', does: 'the settings in the environment and in .env' },
    {
      command: 'postern doctor http://localhost:3000',
      does: 'a gateway that runs, by `postern dev` for example',
    },
    {
      command: 'postern doctor https://mcp.example.com --token-file token.txt --json',
      does: 'with a token, for a program',
    },
  ],
  exitCode1: 'something does not work (a line with ✗)',
  run: async (options, [url], invocation) =>
    (await import('../doctor/doctor.ts')).doctor(url, options, invocation),
});
