import { defineCommand, JSON_OUTPUT, textOption, tokenOptions } from '../command-line/command.ts';

export const doctorCommand = defineCommand({
  name: 'doctor',
  summary: 'say why a login fails, and which setting to change',
  description: [
    'With a URL, it checks a running gateway as a client sees it, up to the login page of the provider: name and TLS, metadata, browsers, registration, the redirect URI, the client secret. It registers a client of its own, which has no rights and is forgotten by itself.',
    'Without one, it checks the settings at hand (environment, .env, configuration file): the provider, the client and its secret, the store, the servers behind the gateway; and the gateway as well, where it runs.',
  ],
  operands: [{ name: 'URL', summary: 'of a running gateway, such as https://mcp.example.com' }],
  options: {
    ...tokenOptions('an access token of a user: check it, too, and what the user sees.'),
    config: textOption('FILE', 'mcp.json', 'the configuration file; without a URL only'),
    json: JSON_OUTPUT,
  },
  examples: {
    'postern doctor': 'the settings in the environment and in .env',
    'postern doctor http://localhost:3000': 'a gateway that runs, by `postern dev` for example',
    'postern doctor https://mcp.example.com --token-file token.txt --json':
      'with a token, for a program',
  },
  exitCode1: 'something does not work (a line with ✗)',
  run: async (options, [url], invocation) =>
    (await import('../doctor/doctor.ts')).doctor(url, options, invocation),
});
